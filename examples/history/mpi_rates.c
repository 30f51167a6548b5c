/* What ways to write compressed output of all ranks cost: one store, a store of each rank, one rank that writes all.
 *
 *     mpicc -O2 $(penstock config --cflags) mpi_rates.c $(penstock config --libs) -lm -o mpi_rates
 *     mpirun -n 4 ./mpi_rates FOLDER 5 [ROWS]
 *
 * Eight steps of 48 MiB, 3072 rows of 4096 numbers: a smooth field of float32 with noise. The ways take turns. A line
 * has the median of the seconds until all steps are in the files, with their range, and the MiB that a step takes
 * there. Ranks that compress share the cores.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "penstock_mpi.h"

enum { NX = 4096, STEPS = 8, MOST_ROUNDS = 32, WAYS = 4 };
enum { ONE_STORE, STORE_EACH, ONE_WRITER, ONE_FILE };
static const char* const titles[WAYS] = {"one store, zstd", "a store of each rank, zstd", "one rank writes all, zstd",
                                         "one file, netCDF-4, not compressed"};

static penstock_error error = PENSTOCK_ERROR_INIT;
static penstock_context* context;
static int rank, ranks, all_rows = 3072;
static float *field, *all;

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "%s\n", error.message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static penstock_history* opened(const char* folder, int way) {
    const char* const names[] = {"y", "x"};
    const int is_part = way == STORE_EACH, is_whole = way == ONE_WRITER;
    const uint64_t rows = (uint64_t)(all_rows / ranks);
    const uint64_t whole[] = {(uint64_t)all_rows, NX}, start[] = {rows * (uint64_t)rank, 0};
    const uint64_t shape[] = {is_whole ? whole[0] : rows, NX};
    char name[4096];
    penstock_history* history = NULL;
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    if (!is_part && !is_whole) options = penstock_mpi_history_options(MPI_COMM_WORLD);
    const long share = sysconf(_SC_NPROCESSORS_ONLN) / ranks;
    options.memory = PENSTOCK_SYSTEM;
    options.format = way == ONE_FILE ? "netcdf4" : "zarr";
    options.compression = way == ONE_FILE ? "none" : "zstd";
    options.encode_threads = is_whole ? 0 : (uint32_t)(share > 1 ? share : 1);
    snprintf(name, sizeof(name), "%s/rates%d.%d", folder, way, is_part ? rank : 0);
    need(penstock_history_open(context, name, &options, &history, &error));
    variable.name = "T";
    variable.dtype = "float32";
    variable.dimensions = names;
    variable.shape = shape;
    variable.global_shape = is_part || is_whole ? NULL : whole;
    variable.start = is_part || is_whole ? NULL : start;
    variable.rank = 2;
    need(penstock_history_define(history, &variable, &error));
    return history;
}

static double written(const char* folder, int way, double* stored_mib) {
    const int is_shared = way == ONE_STORE || way == ONE_FILE, count = NX * (all_rows / ranks);
    penstock_history* history = is_shared || way == STORE_EACH || rank == 0 ? opened(folder, way) : NULL;
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    if (is_shared) need(penstock_mpi_history_begin(history, MPI_COMM_WORLD, &error));
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (int step = 1; step <= STEPS; ++step) {
        const float* mine = field;
        if (way == ONE_WRITER) {
            MPI_Gather(field, count, MPI_FLOAT, all, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
            mine = all;
        }
        if (history == NULL) continue;
        need(penstock_history_put(history, "T", mine, &error));
        need(is_shared ? penstock_mpi_history_end_step(history, step, MPI_COMM_WORLD, &error)
                       : penstock_history_end_step(history, step, &error));
    }
    if (history != NULL) need(penstock_history_wait(history, &error));
    if (history != NULL) need(penstock_history_describe(history, &facts, &error));
    if (is_shared) need(penstock_mpi_history_close(history, MPI_COMM_WORLD, &error));
    if (!is_shared && history != NULL) need(penstock_history_close(history, &error));
    MPI_Barrier(MPI_COMM_WORLD);
    double own = (double)facts.stored_bytes / STEPS / (1 << 20);
    MPI_Allreduce(&own, stored_mib, 1, MPI_DOUBLE, way == ONE_FILE ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
    return MPI_Wtime() - began;
}

static int compared(const void* a, const void* b) {
    const double one = *(const double*)a, other = *(const double*)b;
    return (one > other) - (one < other);
}

int main(int count, char** arguments) {
    static double seconds[WAYS][MOST_ROUNDS], stored[WAYS];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int rounds = count > 2 ? atoi(arguments[2]) : 0;
    if (count > 3) all_rows = atoi(arguments[3]);
    if (rounds < 1 || rounds > MOST_ROUNDS || all_rows < 1 || all_rows % ranks != 0) {
        fprintf(stderr, "mpi_rates FOLDER ROUNDS [ROWS], where the ranks divide the rows\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int cells = NX * (all_rows / ranks);
    penstock_context_options with = PENSTOCK_CONTEXT_OPTIONS_INIT;
    with.device = "host";
    need(penstock_context_create(&with, &context, &error));
    field = malloc((size_t)cells * sizeof(float));
    all = malloc(rank == 0 ? (size_t)NX * (size_t)all_rows * sizeof(float) : 1);
    srand((unsigned)rank + 1);
    for (int i = 0; i < cells; ++i) {
        field[i] = 280 + 20 * sinf((float)(i % NX) / 300) + 1e-3F * (float)rand() / (float)RAND_MAX;
    }
    for (int round = 0; round < rounds; ++round) {
        for (int way = 0; way < WAYS; ++way) seconds[way][round] = written(arguments[1], way, &stored[way]);
    }
    for (int way = 0; rank == 0 && way < WAYS; ++way) {
        qsort(seconds[way], (size_t)rounds, sizeof(double), compared);
        printf("%-36s %.2f s (%.2f to %.2f), %.1f MiB a step\n", titles[way], seconds[way][rounds / 2], seconds[way][0],
               seconds[way][rounds - 1], stored[way]);
    }
    penstock_context_destroy(context);
    MPI_Finalize();
    return 0;
}
