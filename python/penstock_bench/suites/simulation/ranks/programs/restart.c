/* All ranks write a restart, or read one that any number of ranks wrote, and compare each value:
 *     PROGRAM write|read NAME VARIABLES RANKS NZ NY NX
 * Rank 0 prints seconds from barrier to barrier. A write is on stable storage when they end, a read has compared the
 * checksums.
 */
#include <mpi.h>
#include <penstock_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"

static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code) grid_fail("penstock", error.message);
}

static penstock_restart* new_restart(penstock_context* context, char** words, const grid_part* part, float* all) {
    penstock_restart_options options = penstock_mpi_restart_options(MPI_COMM_WORLD);
    penstock_restart* restart = NULL;
    options.memory = PENSTOCK_SYSTEM;
    need(penstock_restart_open(context, words[2], &options, &restart, &error));
    for (int one = 0; one < atoi(words[3]); ++one) {
        char name[16];
        penstock_restart_field field = PENSTOCK_RESTART_FIELD_INIT;
        grid_variable(name, one);
        field.name = name;
        field.dtype = "float32";
        field.data = all + (uint64_t)one * grid_cells(part);
        field.shape = part->whole;
        field.start = part->first;
        field.count = part->box;
        field.rank = 3;
        need(penstock_restart_set_field(restart, &field, &error));
    }
    return restart;
}

static void read_all(penstock_restart* restart) {
    penstock_restart_facts facts = PENSTOCK_RESTART_FACTS_INIT;
    int32_t found = 0;
    need(penstock_mpi_restart_find(restart, &found, MPI_COMM_WORLD, &error));
    if (!found) grid_fail("restart", "there is none");
    need(penstock_mpi_restart_read(restart, &facts, MPI_COMM_WORLD, &error));
}

static void compare(const grid_part* part, int variables, const float* all) {
    float* expected = malloc(grid_cells(part) * sizeof *expected + 1);
    for (int one = 0; expected && one < variables; ++one) {
        grid_fill(part, 0, one, expected);
        if (memcmp(expected, all + (uint64_t)one * grid_cells(part), grid_cells(part) * sizeof *expected) != 0)
            grid_fail("restart", "what a rank read is not what the ranks wrote");
    }
    if (!expected) grid_fail("memory", "there is none to compare");
    free(expected);
}

int main(int count, char** words) {
    penstock_context_options options = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_context* context = NULL;
    if (count != 8) return 2;
    const int writes = !strcmp(words[1], "write"), variables = atoi(words[3]);
    const grid_part part = grid_begin(words + 4, 0);
    float* all = calloc((size_t)variables * grid_cells(&part) + 1, sizeof *all);
    if (!all) grid_fail("memory", "there is none for the fields");
    for (int one = 0; one < variables; ++one) {
        float* field = all + (uint64_t)one * grid_cells(&part);
        grid_fill(&part, 0, one, field);
        if (!writes) memset(field, 0xFF, grid_cells(&part) * sizeof *field);
    }
    options.device = "host";
    need(penstock_context_create(&options, &context, &error));
    penstock_restart* restart = new_restart(context, words, &part, all);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    if (writes) need(penstock_mpi_restart_write(restart, NULL, MPI_COMM_WORLD, &error));
    if (!writes) read_all(restart);
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - start;
    if (!writes) compare(&part, variables, all);
    if (part.rank == 0) printf("%.9g\n", seconds);
    penstock_restart_free(restart);
    penstock_context_destroy(context);
    free(all);
    MPI_Finalize();
    return 0;
}
