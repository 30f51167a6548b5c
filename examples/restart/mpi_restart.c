/* A restart of all ranks of an MPI program, from C: each rank has some of the particles, and another number of ranks
 * goes on with them.
 *
 *     mpicc $(penstock config --cflags) mpi_restart.c $(penstock config --libs) -o mpi_restart
 *     mpirun -n 4 ./mpi_restart run_restart
 *     mpirun -n 3 ./mpi_restart run_restart
 *
 * Each run goes on from the newest restart, if there is one, and writes two. A particle knows its number and the step,
 * so that the program sees whether it has its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "penstock_mpi.h"

enum { PARTICLES = 100003 };

static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "%s\n", error.message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void need_own(const double* x, uint64_t first, uint64_t count, int64_t step) {
    for (uint64_t i = 0; i < count; ++i) {
        if (x[i] == (double)(first + i) + 0.25 * (double)step) continue;
        fprintf(stderr, "particle %llu is wrong\n", (unsigned long long)(first + i));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int count, char** arguments) {
    const uint64_t all = PARTICLES;
    penstock_context_options with = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_restart_field field = PENSTOCK_RESTART_FIELD_INIT;
    penstock_restart_facts facts = PENSTOCK_RESTART_FACTS_INIT;
    penstock_snapshot_attribute attribute = PENSTOCK_SNAPSHOT_ATTRIBUTE_INIT;
    penstock_context* context = NULL;
    penstock_restart* restart = NULL;
    char device[32], room[1024] = {0};
    penstock_text text = {device, sizeof(device), 0}, passed_over = {room, sizeof(room), 0};
    int32_t found = 0;
    int64_t step = 0;
    int rank = 0, ranks = 1;

    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(penstock_mpi_local_device(MPI_COMM_WORLD, &text, &error));
    with.device = device;
    need(penstock_context_create(&with, &context, &error));

    penstock_restart_options options = penstock_mpi_restart_options(MPI_COMM_WORLD);
    options.memory = PENSTOCK_SYSTEM; /* the particles of this example are of the host */
    need(penstock_restart_open(context, count > 1 ? arguments[1] : "run_restart", &options, &restart, &error));
    const uint64_t first = all * (uint64_t)rank / (uint64_t)ranks, end = all * (uint64_t)(rank + 1) / (uint64_t)ranks;
    const uint64_t own = end - first;
    double* x = malloc((own + 1) * sizeof(double));
    field.name = "particles/x";
    field.dtype = "float64";
    field.data = x;
    field.shape = &all;
    field.start = &first;
    field.count = &own;
    field.rank = 1;
    need(penstock_restart_set_field(restart, &field, &error));

    need(penstock_mpi_restart_find(restart, &found, MPI_COMM_WORLD, &error));
    if (found) {
        facts.passed_over = &passed_over;
        need(penstock_mpi_restart_read(restart, &facts, MPI_COMM_WORLD, &error));
        need(penstock_restart_get_numbers(restart, "step", "int64", &step, sizeof(step), &error));
        need_own(x, first, own, step);
        if (rank == 0) printf("%d ranks go on from step %lld%s%s\n", ranks, (long long)step, room[0] ? "; " : "", room);
    }
    for (int written = 0; written < 2; ++written) {
        ++step;
        for (uint64_t i = 0; i < own; ++i) x[i] = (double)(first + i) + 0.25 * (double)step;
        attribute.name = "step";
        attribute.dtype = "int64";
        attribute.values = &step;
        need(penstock_restart_set_attribute(restart, &attribute, &error));
        need(penstock_mpi_restart_write(restart, &facts, MPI_COMM_WORLD, &error));
    }
    if (rank == 0) printf("generation %llu of %d ranks\n", (unsigned long long)facts.generation, ranks);
    free(x);
    penstock_restart_free(restart);
    penstock_context_destroy(context);
    MPI_Finalize();
    return 0;
}
