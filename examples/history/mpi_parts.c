/* A compressed history of each rank of an MPI program, from C: files that open together as one.
 *
 *     mpicc $(penstock config --cflags) mpi_parts.c $(penstock config --libs) -o mpi_parts
 *     mpirun -n 4 ./mpi_parts run
 *
 * The ranks of one file would have to tell each other where their compressed data end; files of their own need no
 * message. `start_global` and `size_global` of a coordinate say which rows of the domain a file has.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "penstock_history.h"

enum { NX = 60, NY = 23, STEPS = 5 };

static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "%s\n", error.message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void set_number(penstock_history* history, const char* variable, const char* name, double value) {
    penstock_attribute made = PENSTOCK_ATTRIBUTE_INIT;
    made.name = name;
    made.dtype = "int32";
    made.numbers = &value;
    made.count = 1;
    need(penstock_history_set_attribute(history, variable, &made, &error));
}

/* Rows from `first` on, so many of them. */
static void define(penstock_history* history, uint64_t first, uint64_t rows) {
    static double y[NY];
    const char* const names[] = {"y", "x"};
    const uint64_t shape[] = {rows, NX};
    penstock_history_constant axis = PENSTOCK_HISTORY_CONSTANT_INIT;
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    for (uint64_t row = 0; row < rows; ++row) y[row] = 500.0 * (double)(first + row);
    axis.name = "y";
    axis.dtype = "float64";
    axis.dimensions = names;
    axis.shape = shape;
    axis.rank = 1;
    axis.values = y;
    axis.bytes = rows * sizeof(double);
    need(penstock_history_define_constant(history, &axis, &error));
    set_number(history, "y", "size_global", NY);
    set_number(history, "y", "start_global", (double)(first + 1));
    variable.name = "T";
    variable.dtype = "float32";
    variable.dimensions = names;
    variable.shape = shape;
    variable.rank = 2;
    need(penstock_history_define(history, &variable, &error));
}

int main(int count, char** arguments) {
    static float field[NY][NX];
    char name[1024];
    penstock_context* context = NULL;
    penstock_history* history = NULL;
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    int rank = 0, ranks = 1;

    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    options.format = count > 2 ? arguments[2] : "netcdf4"; /* or "zarr" */
    snprintf(name, sizeof(name), "%s.pe%06d.%s", count > 1 ? arguments[1] : "run", rank,
             strcmp(options.format, "zarr") == 0 ? "zarr" : "nc");
    options.compression = "gzip";
    options.encode_threads = 1; /* a rank for each core */
    options.memory = PENSTOCK_SYSTEM; /* the field of this example is of the host */
    const uint64_t first = (uint64_t)(NY * rank / ranks), end = (uint64_t)(NY * (rank + 1) / ranks);
    need(penstock_context_create(NULL, &context, &error));
    need(penstock_history_open(context, name, &options, &history, &error));
    define(history, first, end - first);
    set_number(history, NULL, "rankid", rank);

    for (int step = 1; step <= STEPS; ++step) {
        for (uint64_t row = 0; row < end - first; ++row) {
            for (int i = 0; i < NX; ++i) field[row][i] = (float)(1000 * step + 100 * (int)(first + row) + i);
        }
        need(penstock_history_put(history, "T", field, &error));
        need(penstock_history_end_step(history, 10.0 * step, &error)); /* returns at once */
    }
    need(penstock_history_wait(history, &error));
    need(penstock_history_describe(history, &facts, &error));
    need(penstock_history_close(history, &error));
    const int is_smaller = facts.stored_bytes < facts.steps_published * facts.step_bytes;
    int all_smaller = 0;
    MPI_Reduce(&is_smaller, &all_smaller, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    const char* const how = all_smaller ? "compressed" : "as large as before";
    if (rank == 0) printf("%d steps of %d ranks, %s\n", STEPS, ranks, how);
    penstock_context_destroy(context);
    MPI_Finalize();
    return 0;
}
