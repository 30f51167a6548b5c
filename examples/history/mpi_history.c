/* One history of all ranks of an MPI program, from C: each rank writes its rows.
 *
 *     mpicc $(penstock config --cflags) mpi_history.c $(penstock config --libs) -o mpi_history
 *     mpirun -n 4 ./mpi_history mpi_history.nc
 *     mpirun -n 4 ./mpi_history run.zarr zarr zstd
 *
 * penstock_history_split gives ranks equal numbers of rows, and the last ones what is left, or none. A Zarr store takes
 * them so: each rank compresses its rows, and writes them to files of its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "penstock_mpi.h"

enum { NX = 60, NY = 6, STEPS = 5 };

static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "%s\n", error.message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int count, char** arguments) {
    static float field[NY][NX];
    const char* const names[] = {"y", "x"};
    const uint64_t global_shape[] = {NY, NX};
    penstock_context_options with = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    penstock_context* context = NULL;
    penstock_history* history = NULL;
    char device[32];
    penstock_text text = {device, sizeof(device), 0};
    int rank = 0, ranks = 1;

    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(penstock_mpi_local_device(MPI_COMM_WORLD, &text, &error));
    with.device = device;
    need(penstock_context_create(&with, &context, &error));

    penstock_history_options options = penstock_mpi_history_options(MPI_COMM_WORLD);
    options.memory = PENSTOCK_SYSTEM; /* the field of this example is of the host */
    if (count > 2) options.format = arguments[2];
    if (count > 3) options.compression = arguments[3];
    options.encode_threads = 1; /* as it is, each rank takes all cores */
    need(penstock_history_open(context, count > 1 ? arguments[1] : "mpi_history.nc", &options, &history, &error));
    uint64_t shape[] = {0, NX}, start[] = {0, 0};
    need(penstock_history_split(NY, (uint32_t)ranks, (uint32_t)rank, &start[0], &shape[0], &error));
    variable.name = "T";
    variable.dtype = "float32";
    variable.dimensions = names;
    variable.shape = shape;
    variable.global_shape = global_shape;
    variable.start = start;
    variable.rank = 2;
    need(penstock_history_define(history, &variable, &error));
    need(penstock_mpi_history_begin(history, MPI_COMM_WORLD, &error));

    for (int step = 1; step <= STEPS; ++step) {
        for (uint64_t row = 0; row < shape[0]; ++row) {
            for (int i = 0; i < NX; ++i) field[row][i] = (float)(1000 * step + 100 * (int)(start[0] + row) + i);
        }
        need(penstock_history_put(history, "T", field, &error));
        need(penstock_mpi_history_end_step(history, 10.0 * step, MPI_COMM_WORLD, &error));
    }
    need(penstock_mpi_history_close(history, MPI_COMM_WORLD, &error));
    if (rank == 0) printf("%d steps of %d ranks on %s\n", STEPS, ranks, device);
    penstock_context_destroy(context);
    MPI_Finalize();
    return 0;
}
