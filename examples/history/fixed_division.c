/* One compressed store of all ranks of a model whose division is fixed, and divides badly: rank r has the rows from
 * ROWS * r / ranks on, inside a halo of one row and one column. They are exchanged for boxes of which a store is made.
 *
 *     mpicc $(penstock config --cflags) fixed_division.c $(penstock config --libs) -o fixed_division
 *     mpirun -n 7 ./fixed_division run.zarr
 */
#include <stdio.h>
#include <stdlib.h>

#include "penstock_mpi_exchange.h"

enum { ROWS = 1000, COLUMNS = 60, STEPS = 5 };

static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "%s\n", error.message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int count, char** arguments) {
    const char* const names[] = {"y", "x"};
    const uint64_t global_shape[] = {ROWS, COLUMNS};
    penstock_context_options with = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    penstock_mpi_division division;
    penstock_mpi_exchange exchange;
    penstock_context* context = NULL;
    penstock_history* history = NULL;
    int rank = 0, ranks = 1;

    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const uint64_t first = (uint64_t)ROWS * (uint64_t)rank / (uint64_t)ranks;
    const uint64_t rows = (uint64_t)ROWS * (uint64_t)(rank + 1) / (uint64_t)ranks - first;

    memset(&division, 0, sizeof(division));
    division.dimensions = 2;
    division.item_bytes = sizeof(float);
    division.has = (penstock_mpi_box){{first, 0}, {rows, COLUMNS}, {rows + 2, COLUMNS + 2}, {1, 1}};
    division.gets.shape[1] = COLUMNS;
    uint64_t* const start = division.gets.start;
    uint64_t* const shape = division.gets.shape;
    need(penstock_history_split(ROWS, (uint32_t)ranks, (uint32_t)rank, &start[0], &shape[0], &error));
    need(penstock_mpi_exchange_open(&division, MPI_COMM_WORLD, &exchange, &error));

    with.device = "host";
    need(penstock_context_create(&with, &context, &error));
    penstock_history_options options = penstock_mpi_history_options(MPI_COMM_WORLD);
    options.memory = PENSTOCK_SYSTEM;
    options.format = "zarr";
    options.compression = "zstd";
    options.encode_threads = 1;
    need(penstock_history_open(context, count > 1 ? arguments[1] : "run.zarr", &options, &history, &error));
    variable.name = "T";
    variable.dtype = "float32";
    variable.dimensions = names;
    variable.shape = shape;
    variable.global_shape = global_shape;
    variable.start = start;
    variable.rank = 2;
    need(penstock_history_define(history, &variable, &error));
    need(penstock_mpi_history_begin(history, MPI_COMM_WORLD, &error));

    float* const field = calloc((rows + 2) * (COLUMNS + 2), sizeof(float));
    float* const to_write = malloc((shape[0] + 1) * COLUMNS * sizeof(float));
    for (int step = 1; step <= STEPS; ++step) {
        for (uint64_t row = 0; row < rows; ++row) {
            for (int i = 0; i < COLUMNS; ++i) {
                field[(row + 1) * (COLUMNS + 2) + (uint64_t)i + 1] = (float)(1000 * step + (int)(first + row) + i);
            }
        }
        penstock_mpi_exchange_move(&exchange, field, to_write);
        need(penstock_history_put(history, "T", to_write, &error));
        need(penstock_mpi_history_end_step(history, 10.0 * step, MPI_COMM_WORLD, &error));
    }
    need(penstock_mpi_history_close(history, MPI_COMM_WORLD, &error));
    penstock_mpi_exchange_close(&exchange);
    if (rank == 0) printf("%d steps of %d ranks\n", STEPS, ranks);
    free(field);
    free(to_write);
    penstock_context_destroy(context);
    MPI_Finalize();
    return 0;
}
