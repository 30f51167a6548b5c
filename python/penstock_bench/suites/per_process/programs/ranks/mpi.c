/* See ranks.h. Of MPI only what every version of it has. */
#include "ranks/ranks.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int ranks_begin(int processes) {
    int rank = 0, size = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    errno = 0;
    if (size != processes) ranks_fail("mpirun started another number of processes than asked:", "it is of another MPI");
    return rank;
}

void ranks_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

double ranks_clock(void) { return MPI_Wtime(); }

void ranks_gather(const double* mine, int count, double* all) {
    MPI_Gather(mine, count, MPI_DOUBLE, all, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

void ranks_end(void) { MPI_Finalize(); }

void ranks_fail(const char* what, const char* file) {
    const char* cause = errno ? strerror(errno) : "";
    fprintf(stderr, "failed: %s %s%s%s\n", what, file, errno ? ": " : "", cause);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
