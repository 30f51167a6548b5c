/* All ranks write one file, several steps of several variables or one snapshot of them:
 *     PROGRAM FILE VARIABLES STEPS VARIANT RANKS NZ NY NX
 * Rank 0 prints seconds: its own until data can be written, from barrier to barrier until all is in the file, and of an
 * fsync of it after that. All values are in memory before the clock starts.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "way.h"

static float* new_fields(const way_file* file, int steps) {
    const uint64_t cells = grid_cells(&file->part);
    float* all = malloc((size_t)steps * (size_t)file->variables * cells * sizeof *all + 1);
    if (!all) grid_fail("memory", "there is none for the fields");
    for (int step = 0; step < steps; ++step) {
        for (int one = 0; one < file->variables; ++one)
            grid_fill(&file->part, step, one, all + (uint64_t)(step * file->variables + one) * cells);
    }
    return all;
}

static double synced(const char* name) {
    const double start = MPI_Wtime();
    const int descriptor = open(name, O_RDWR);
    if (descriptor < 0 || fsync(descriptor) != 0) grid_fail("fsync", name);
    close(descriptor);
    return MPI_Wtime() - start;
}

int main(int count, char** words) {
    if (count != 9) return 2;
    way_file file = {.name = words[1], .variables = atoi(words[2]), .steps = atoi(words[3])};
    file.is_variant = atoi(words[4]);
    file.part = grid_begin(words + 5, file.steps ? 1 : 0);
    const int steps = file.steps ? file.steps : 1;
    float* fields = new_fields(&file, steps);

    way_start();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    way_begin(&file);
    const double begun = MPI_Wtime() - start;
    for (int step = 0; step < steps; ++step)
        way_step(&file, step, fields + (uint64_t)(step * file.variables) * grid_cells(&file.part));
    way_end(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    const double all = MPI_Wtime() - start;
    if (file.part.rank == 0) printf("%.9g %.9g %.9g\n", begun, all, synced(file.name));
    free(fields);
    way_stop();
    MPI_Finalize();
    return 0;
}
