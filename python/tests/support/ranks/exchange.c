/* Random divisions of an array are exchanged for others, and each element is looked at. A program of MPI, for a test.
 *
 *     exchange SEED [same | overlap | gap | item | room]
 *
 * Each rank has a cell of a grid of uneven boxes inside a halo, and gets one of another grid. The last word is a
 * mistake of one rank. Each rank prints what it was told, or rank 0 how many elements came. */
#include <stdio.h>
#include <stdlib.h>

#include "penstock_mpi_exchange.h"

enum { MOST = PENSTOCK_MPI_DIMENSIONS, NOTHING = 0xEE };

static unsigned long long state;
static uint64_t shape[MOST]; /* of the array of all ranks */

static uint64_t any(uint64_t least, uint64_t most) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return least + (state >> 33) % (most - least + 1);
}

/* The cell of a rank in a grid of so many cells; ranks behind the last cell have none. The same on all ranks. */
static void divide(penstock_mpi_box* box, uint64_t dimensions, int rank, int ranks) {
    uint64_t cells[MOST], left = (uint64_t)ranks, place = (uint64_t)rank;
    for (uint64_t axis = 0; axis < dimensions; ++axis) {
        cells[axis] = any(1, left < shape[axis] ? left : shape[axis]);
        left /= cells[axis];
    }
    for (uint64_t axis = 0; axis < dimensions; ++axis) {
        const uint64_t at = place % cells[axis];
        uint64_t cuts[65] = {0};
        place /= cells[axis];
        for (uint64_t cell = 1; cell < cells[axis]; ++cell) cuts[cell] = any(cuts[cell - 1], shape[axis]);
        cuts[cells[axis]] = shape[axis];
        box->start[axis] = cuts[at];
        box->shape[axis] = cuts[at + 1] - cuts[at];
        const uint64_t low = any(0, 2), high = any(0, 2);
        box->memory_start[axis] = low;
        box->memory_shape[axis] = low + box->shape[axis] + high + 1;
    }
    if (place != 0) memset(box->shape, 0, sizeof(box->shape));
}

static uint64_t bytes_of(const penstock_mpi_division* division, const penstock_mpi_box* box) {
    uint64_t bytes = division->item_bytes;
    for (uint64_t axis = 0; axis < division->dimensions; ++axis) bytes *= box->memory_shape[axis];
    return bytes;
}

/* For each element in memory: the byte that the array of all ranks has there, or NOTHING around the box. */
static void each(const penstock_mpi_division* division, const penstock_mpi_box* box, unsigned char* memory,
                 uint64_t* wrong) {
    const uint64_t items = bytes_of(division, box) / division->item_bytes;
    for (uint64_t at = 0; at < items; ++at) {
        uint64_t rest = at, number = 0, scale = 1;
        int inside = 1;
        for (uint64_t axis = division->dimensions; axis-- > 0;) {
            const uint64_t here = rest % box->memory_shape[axis];
            rest /= box->memory_shape[axis];
            inside &= here >= box->memory_start[axis] && here - box->memory_start[axis] < box->shape[axis];
            number += (here - box->memory_start[axis] + box->start[axis]) * scale;
            scale *= shape[axis];
        }
        for (uint64_t byte = 0; byte < division->item_bytes; ++byte) {
            unsigned char* const one = &memory[at * division->item_bytes + byte];
            const unsigned char value = inside ? (unsigned char)((number * 31 + byte * 7) % 199) : NOTHING;
            if (wrong == NULL) *one = value;
            else *wrong += *one != value;
        }
    }
}

int main(int count, char** arguments) {
    penstock_mpi_division division;
    penstock_mpi_exchange exchange;
    penstock_error error = PENSTOCK_ERROR_INIT;
    uint64_t wrong = 0, came = 1;
    int rank = 0, ranks = 1;
    const char* const mistake = count > 2 ? arguments[2] : "same";
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    state = strtoull(arguments[1], NULL, 10);
    memset(&division, 0, sizeof(division));
    division.dimensions = any(1, 4);
    division.item_bytes = any(1, 9);
    for (uint64_t axis = 0; axis < division.dimensions; ++axis) shape[axis] = any(2, 12);
    divide(&division.has, division.dimensions, rank, ranks);
    divide(&division.gets, division.dimensions, rank, ranks);
    if (rank == 1 && strcmp(mistake, "overlap") == 0) division.has.shape[0] = shape[0];
    if (rank == 1 && strcmp(mistake, "overlap") == 0) division.has.start[0] = 0;
    if (strcmp(mistake, "gap") == 0 && rank == 0) memset(division.has.shape, 0, sizeof(division.has.shape));
    if (rank == 1 && strcmp(mistake, "item") == 0) ++division.item_bytes;
    if (rank == 1 && strcmp(mistake, "room") == 0) division.gets.memory_start[0] = division.gets.memory_shape[0] + 1;
    for (uint64_t axis = 0; axis < division.dimensions; ++axis) {
        if (division.has.memory_shape[axis] < division.has.memory_start[axis] + division.has.shape[axis]) {
            division.has.memory_shape[axis] = division.has.memory_start[axis] + division.has.shape[axis];
        }
    }
    if (penstock_mpi_exchange_open(&division, MPI_COMM_WORLD, &exchange, &error) != PENSTOCK_OK) {
        fprintf(stderr, "rank %d has: %s\n", rank, error.message);
        MPI_Finalize();
        return 1;
    }
    unsigned char* const from = malloc(bytes_of(&division, &division.has));
    unsigned char* const to = malloc(bytes_of(&division, &division.gets));
    each(&division, &division.has, from, NULL);
    for (int turn = 0; turn < 2; ++turn) {
        memset(to, NOTHING, bytes_of(&division, &division.gets));
        penstock_mpi_exchange_move(&exchange, from, to);
        each(&division, &division.gets, to, &wrong);
    }
    penstock_mpi_exchange_close(&exchange);
    uint64_t all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    for (uint64_t axis = 0; axis < division.dimensions; ++axis) came *= shape[axis];
    if (rank == 0) printf("%llu wrong of %llu\n", (unsigned long long)all, (unsigned long long)came);
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
