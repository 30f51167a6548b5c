/* Elements of an array of all ranks go from the boxes that the ranks of a model have to boxes of which a store can be
 * made, or to any others. Functions of a header, of plain MPI; the library has no MPI.
 *
 *     penstock_mpi_division division = {.dimensions = 2, .item_bytes = sizeof(float)};
 *     division.has.start[0] = first; division.has.shape[0] = rows; ...                       (of this rank, as it is)
 *     penstock_history_split(total, ranks, rank, &division.gets.start[0], &division.gets.shape[0], &error);   ...
 *     penstock_mpi_exchange_open(&division, comm, &exchange, &error);
 *     each step:  penstock_mpi_exchange_move(&exchange, field, rows_to_write);
 *                 penstock_history_put(history, "T", rows_to_write, &error);  ...
 *     penstock_mpi_exchange_close(&exchange);
 *
 * All are collective: all ranks of comm call them. A move is one MPI_Alltoallw of the calling thread, in which a rank
 * sends to those few that get elements of its box. Memory is of the host, or of a GPU where the MPI takes that.
 */
#ifndef PENSTOCK_MPI_EXCHANGE_H
#define PENSTOCK_MPI_EXCHANGE_H

#include <limits.h>
#include <stdlib.h>

#include "penstock_mpi.h"

enum { PENSTOCK_MPI_DIMENSIONS = 8 };

/* Elements [start, start + shape) of the array of all ranks, in C order: the last dimension varies fastest. In memory
 * they lie in an array of memory_shape, from memory_start on, as inside a halo. Zeros there: in an array of shape. */
typedef struct penstock_mpi_box {
    uint64_t start[PENSTOCK_MPI_DIMENSIONS];
    uint64_t shape[PENSTOCK_MPI_DIMENSIONS];
    uint64_t memory_shape[PENSTOCK_MPI_DIMENSIONS];
    uint64_t memory_start[PENSTOCK_MPI_DIMENSIONS];
} penstock_mpi_box;

/* Boxes that ranks have do not overlap, and have all elements of the boxes that ranks get. */
typedef struct penstock_mpi_division {
    uint64_t dimensions;
    uint64_t item_bytes;
    penstock_mpi_box has;
    penstock_mpi_box gets;
} penstock_mpi_division;

typedef struct penstock_mpi_exchange {
    MPI_Comm comm;
    int ranks;
    int* counts;         /* of each rank: 0 or 1, to be sent; then those that come; then zeros */
    MPI_Datatype* types; /* of each rank: what is sent to it; then what comes from it */
} penstock_mpi_exchange;

/* Not for programs. */
typedef struct penstock_mpi_extent {
    uint64_t start[PENSTOCK_MPI_DIMENSIONS];
    uint64_t shape[PENSTOCK_MPI_DIMENSIONS];
} penstock_mpi_extent;

/* Not for programs. What a rank tells all others. */
typedef struct penstock_mpi_told {
    uint64_t dimensions;
    uint64_t item_bytes;
    penstock_mpi_extent has;
    penstock_mpi_extent gets;
} penstock_mpi_told;

/* Not for programs. */
static inline int penstock_mpi_refuse(const char* cause, const char* advice, penstock_error* error) {
    error->code = PENSTOCK_INVALID_ARGUMENT;
    snprintf(error->operation, sizeof(error->operation), "exchange boxes");
    snprintf(error->cause, sizeof(error->cause), "%s", cause);
    snprintf(error->advice, sizeof(error->advice), "%s", advice);
    snprintf(error->message, sizeof(error->message), "exchange boxes: %s; %s", cause, advice);
    return PENSTOCK_INVALID_ARGUMENT;
}

/* Not for programs. What two boxes have in common. Returns how many elements. */
static inline uint64_t penstock_mpi_common(const penstock_mpi_extent* one, const penstock_mpi_extent* other,
                                           uint64_t dimensions, penstock_mpi_extent* common) {
    uint64_t elements = 1;
    for (uint64_t axis = 0; axis < dimensions; ++axis) {
        const uint64_t low = one->start[axis] > other->start[axis] ? one->start[axis] : other->start[axis];
        const uint64_t end = one->start[axis] + one->shape[axis], others = other->start[axis] + other->shape[axis];
        const uint64_t high = end < others ? end : others;
        common->start[axis] = low;
        common->shape[axis] = high > low ? high - low : 0;
        elements *= common->shape[axis];
    }
    return elements;
}

/* Not for programs. */
static inline int penstock_mpi_box_is_sound(const penstock_mpi_box* box, uint64_t dimensions) {
    for (uint64_t axis = 0; axis < dimensions; ++axis) {
        const uint64_t room = box->memory_shape[axis], start = box->memory_start[axis], shape = box->shape[axis];
        if (box->start[axis] > UINT64_MAX - shape || shape > INT_MAX || room > INT_MAX) return 0;
        if (room == 0 ? start != 0 : start > room || shape > room - start) return 0;
    }
    return 1;
}

/* Not for programs. The elements `common` of a box, where they lie in memory. */
static inline MPI_Datatype penstock_mpi_place_of(const penstock_mpi_box* box, const penstock_mpi_told* told,
                                                 const penstock_mpi_extent* common) {
    int sizes[PENSTOCK_MPI_DIMENSIONS], shape[PENSTOCK_MPI_DIMENSIONS], start[PENSTOCK_MPI_DIMENSIONS];
    MPI_Datatype item, made;
    for (uint64_t axis = 0; axis < told->dimensions; ++axis) {
        const uint64_t room = box->memory_shape[axis];
        sizes[axis] = (int)(room != 0 ? room : box->shape[axis]);
        shape[axis] = (int)common->shape[axis];
        start[axis] = (int)(box->memory_start[axis] + common->start[axis] - box->start[axis]);
    }
    MPI_Type_contiguous((int)told->item_bytes, MPI_BYTE, &item);
    MPI_Type_create_subarray((int)told->dimensions, sizes, shape, start, MPI_ORDER_C, item, &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&item);
    return made;
}

/* Not for programs. Requires: a division that is sound. all: what each rank told. */
static inline int penstock_mpi_exchange_plan(const penstock_mpi_division* division, const penstock_mpi_told* all,
                                             penstock_mpi_exchange* exchange, penstock_error* error) {
    penstock_mpi_extent common, both;
    uint64_t coming = 0, wanted = 1;
    int rank = 0;
    MPI_Comm_rank(exchange->comm, &rank);
    const penstock_mpi_told* const mine = &all[rank];
    for (uint64_t axis = 0; axis < mine->dimensions; ++axis) wanted *= mine->gets.shape[axis];
    for (int other = 0; other < exchange->ranks; ++other) {
        const penstock_mpi_told* const theirs = &all[other];
        if (theirs->dimensions != mine->dimensions || theirs->item_bytes != mine->item_bytes) {
            return penstock_mpi_refuse("ranks have elements or dimensions that differ", "give all the same", error);
        }
        if (penstock_mpi_common(&mine->has, &theirs->gets, mine->dimensions, &common) != 0) {
            exchange->counts[other] = 1;
            exchange->types[other] = penstock_mpi_place_of(&division->has, mine, &common);
        }
        const int from = exchange->ranks + other;
        const uint64_t elements = penstock_mpi_common(&theirs->has, &mine->gets, mine->dimensions, &common);
        if (elements == 0) continue;
        coming += elements;
        exchange->counts[from] = 1;
        exchange->types[from] = penstock_mpi_place_of(&division->gets, mine, &common);
        for (int before = 0; before < other; ++before) {
            if (penstock_mpi_common(&all[before].has, &common, mine->dimensions, &both) != 0) {
                return penstock_mpi_refuse("two ranks have the same element", "give each element to one", error);
            }
        }
    }
    if (coming == wanted) return PENSTOCK_OK;
    return penstock_mpi_refuse("a rank gets elements that no rank has", "give each element to one", error);
}

/* The exchange is gone afterwards. It may be one that open refused. */
static inline void penstock_mpi_exchange_close(penstock_mpi_exchange* exchange) {
    for (int at = 0; exchange->types != NULL && at < 2 * exchange->ranks; ++at) {
        if (exchange->counts[at] != 0) MPI_Type_free(&exchange->types[at]);
    }
    free(exchange->counts);
    free(exchange->types);
    memset(exchange, 0, sizeof(*exchange));
}

/* Not for programs. Memory for so many ranks. */
static inline int penstock_mpi_exchange_make(penstock_mpi_exchange* exchange, penstock_mpi_told** all,
                                             penstock_error* error) {
    const size_t ranks = (size_t)exchange->ranks;
    exchange->counts = (int*)calloc(3 * ranks, sizeof(int));
    exchange->types = (MPI_Datatype*)malloc(2 * ranks * sizeof(MPI_Datatype));
    *all = (penstock_mpi_told*)malloc(ranks * sizeof(penstock_mpi_told));
    if (exchange->counts != NULL && exchange->types != NULL && *all != NULL) {
        for (size_t at = 0; at < 2 * ranks; ++at) exchange->types[at] = MPI_BYTE;
        return PENSTOCK_OK;
    }
    free(exchange->types);
    exchange->types = NULL;
    return penstock_mpi_refuse("there is no memory for what the ranks tell", "run fewer ranks a machine", error);
}

/* On failure there is nothing to close. */
static inline int penstock_mpi_exchange_open(const penstock_mpi_division* division, MPI_Comm comm,
                                             penstock_mpi_exchange* exchange, penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    penstock_mpi_told mine, *all = NULL;
    if (error == NULL) error = &own;
    memset(exchange, 0, sizeof(*exchange));
    memset(&mine, 0, sizeof(mine));
    exchange->comm = comm;
    MPI_Comm_size(comm, &exchange->ranks);
    const uint64_t dimensions = division->dimensions, item_bytes = division->item_bytes;
    int code = penstock_mpi_exchange_make(exchange, &all, error);
    if (dimensions == 0 || dimensions > PENSTOCK_MPI_DIMENSIONS || item_bytes == 0 || item_bytes > INT_MAX) {
        code = penstock_mpi_refuse("dimensions are 1 to 8, and item_bytes of an element", "give both", error);
    } else if (!penstock_mpi_box_is_sound(&division->has, dimensions) ||
               !penstock_mpi_box_is_sound(&division->gets, dimensions)) {
        code = penstock_mpi_refuse("a box leaves its memory, or is longer than 2147483647",
                                   "memory_shape has room for memory_start and shape", error);
    }
    code = penstock_mpi_agreed(code, comm, error);
    if (code == PENSTOCK_OK) {
        mine.dimensions = dimensions;
        mine.item_bytes = item_bytes;
        memcpy(mine.has.start, division->has.start, sizeof(mine.has.start));
        memcpy(mine.has.shape, division->has.shape, sizeof(mine.has.shape));
        memcpy(mine.gets.start, division->gets.start, sizeof(mine.gets.start));
        memcpy(mine.gets.shape, division->gets.shape, sizeof(mine.gets.shape));
        MPI_Allgather(&mine, (int)sizeof(mine), MPI_BYTE, all, (int)sizeof(mine), MPI_BYTE, comm);
        code = penstock_mpi_agreed(penstock_mpi_exchange_plan(division, all, exchange, error), comm, error);
    }
    free(all);
    if (code != PENSTOCK_OK) penstock_mpi_exchange_close(exchange);
    return code;
}

/* from: the first element of the array that this rank has in memory, halo included; to: of the one that it gets. What
 * lies around the boxes stays as it is. Returns when both may be used. MPI's own handler has errors of MPI. */
static inline void penstock_mpi_exchange_move(const penstock_mpi_exchange* exchange, const void* from, void* to) {
    const int ranks = exchange->ranks;
    const int* const zeros = exchange->counts + 2 * ranks;
    MPI_Alltoallw(from, exchange->counts, zeros, exchange->types, to, exchange->counts + ranks, zeros,
                  exchange->types + ranks, exchange->comm);
}

#endif
