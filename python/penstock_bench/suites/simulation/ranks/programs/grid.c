/* See grid.h. Calls of MPI that each version of it has. */
#include "grid.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void grid_variable(char* name, int variable) { snprintf(name, 16, "V%03d", variable); }

void grid_fail(const char* what, const char* cause) {
    fprintf(stderr, "failed: %s: %s\n", what, cause);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The first ranks have one more where the axis does not divide. */
static void divide(grid_part* part, int axis) {
    const uint64_t ranks = (uint64_t)part->ranks, rank = (uint64_t)part->rank;
    const uint64_t each = part->whole[axis] / ranks, more = part->whole[axis] % ranks;
    part->first[axis] = rank * each + (rank < more ? rank : more);
    part->box[axis] = each + (rank < more);
}

grid_part grid_begin(char** words, int axis) {
    grid_part part = {0};
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &part.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &part.ranks);
    if (part.ranks != atoi(words[0])) grid_fail("mpirun", "it is of another MPI than the compiler");
    for (int one = 0; one < 3; ++one) part.box[one] = part.whole[one] = strtoull(words[1 + one], NULL, 10);
    divide(&part, axis);
    return part;
}

uint64_t grid_cells(const grid_part* part) { return part->box[0] * part->box[1] * part->box[2]; }

void grid_fill(const grid_part* part, int step, int variable, float* values) {
    const uint64_t tag = (uint64_t)((variable + 3 * step) & 15) << 20;
    for (uint64_t z = 0; z < part->box[0]; ++z) {
        for (uint64_t y = 0; y < part->box[1]; ++y) {
            const uint64_t row = (part->first[0] + z) * part->whole[1] + part->first[1] + y;
            for (uint64_t x = 0; x < part->box[2]; ++x)
                *values++ = (float)(((row * part->whole[2] + x) & 0xFFFFF) + tag);
        }
    }
}
