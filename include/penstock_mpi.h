/* Histories and snapshots of MPI programs: one file, of which each rank writes its part, or for snapshots a file each.
 * Functions of a header; the library has no MPI.
 *
 *     penstock_history_options options = penstock_mpi_history_options(comm);
 *     penstock_history_open(context, "history.nc", &options, &history, &error);
 *     penstock_history_define(history, &variable, &error);      (global_shape and start in the variable)
 *     penstock_mpi_history_begin(history, comm, &error);
 *     each step:  penstock_history_put(...); penstock_mpi_history_end_step(history, time, comm, &error);
 *     penstock_mpi_history_close(history, comm, &error);
 *
 *     penstock_snapshot_options options = penstock_mpi_snapshot_options(comm);
 *     penstock_snapshot_open(context, "snapshot.hdf5", &options, &snapshot, &error);
 *     penstock_mpi_rows(particles, rows, comm);                  (rows: room for a number of each rank)
 *     dataset.process_rows = rows; dataset.process_count = options.processes;
 *     penstock_snapshot_add_dataset(snapshot, &dataset, &error); (shape: of this rank)
 *     penstock_mpi_snapshot_write(snapshot, fields, count, comm, &error);
 *
 * Functions named penstock_mpi_ are collective: all ranks of comm call them, and all get the same code. Where one rank
 * fails, the others have its message. Plain MPI-1 calls from the calling thread: MPI_THREAD_MULTIPLE is not needed. A
 * step is published when every rank has written its part, at the latest by close. Ranks may have empty boxes, and no
 * particles.
 */
#ifndef PENSTOCK_MPI_H
#define PENSTOCK_MPI_H

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "penstock_history.h"
#include "penstock_snapshot.h"

static inline penstock_history_options penstock_mpi_history_options(MPI_Comm comm) {
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    options.process = (uint32_t)rank;
    options.processes = (uint32_t)ranks;
    return options;
}

/* Not for programs. The first rank that failed gives its code to all, and its message to those that did not fail. */
static inline int penstock_mpi_agreed(int code, MPI_Comm comm, penstock_error* error) {
    struct {
        int failed;
        int rank;
    } mine = {code != PENSTOCK_OK, 0}, first;
    char text[sizeof(error->message)] = {0};
    MPI_Comm_rank(comm, &mine.rank);
    MPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MAXLOC, comm);
    if (!first.failed) return PENSTOCK_OK;
    const int own = code;
    if (first.rank == mine.rank && error != NULL) memcpy(text, error->message, sizeof(text) - 1);
    MPI_Bcast(&code, 1, MPI_INT, first.rank, comm);
    MPI_Bcast(text, (int)sizeof(text), MPI_CHAR, first.rank, comm);
    if (own != PENSTOCK_OK || error == NULL) return code;
    error->code = code;
    snprintf(error->operation, sizeof(error->operation), "agree with rank %d", first.rank);
    snprintf(error->cause, sizeof(error->cause), "rank %d: %.480s", first.rank, text);
    snprintf(error->message, sizeof(error->message), "rank %d: %.2000s", first.rank, text);
    return code;
}

/* Not for programs. The digest is that of all ranks. */
static inline int penstock_mpi_same(uint64_t digest, MPI_Comm comm, penstock_error* error) {
    uint64_t low = 0, high = 0;
    MPI_Allreduce(&digest, &low, 1, MPI_UINT64_T, MPI_MIN, comm);
    MPI_Allreduce(&digest, &high, 1, MPI_UINT64_T, MPI_MAX, comm);
    if (low == high) return PENSTOCK_OK;
    error->code = PENSTOCK_INVALID_ARGUMENT;
    snprintf(error->operation, sizeof(error->operation), "begin");
    snprintf(error->cause, sizeof(error->cause), "the ranks define different files");
    snprintf(error->advice, sizeof(error->advice), "define the same dimensions, variables and attributes on each");
    snprintf(error->message, sizeof(error->message), "begin: %s; %s", error->cause, error->advice);
    return PENSTOCK_INVALID_ARGUMENT;
}

/* Rank 0 makes the file, and the others open it. Refuses definitions that are not the same on all ranks. */
static inline int penstock_mpi_history_begin(penstock_history* history, MPI_Comm comm, penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    uint64_t digest = 0;
    int rank = 0;
    if (error == NULL) error = &own;
    int code = penstock_mpi_agreed(penstock_history_digest(history, &digest, error), comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_same(digest, comm, error);
    if (code != PENSTOCK_OK) return code;
    MPI_Comm_rank(comm, &rank);
    code = penstock_mpi_agreed(rank == 0 ? penstock_history_begin(history, error) : PENSTOCK_OK, comm, error);
    if (code != PENSTOCK_OK) return code;
    return penstock_mpi_agreed(rank != 0 ? penstock_history_begin(history, error) : PENSTOCK_OK, comm, error);
}

/* Not for programs. Publishes what every rank has written. */
static inline int penstock_mpi_history_publish(penstock_history* history, MPI_Comm comm, penstock_error* error) {
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    uint64_t steps = 0;
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    if (ranks == 1) return PENSTOCK_OK; /* the history does it */
    int code = penstock_history_describe(history, &facts, error);
    MPI_Allreduce(&facts.steps_written, &steps, 1, MPI_UINT64_T, MPI_MIN, comm);
    if (code == PENSTOCK_OK) code = penstock_history_publish(history, steps, error);
    return penstock_mpi_agreed(code, comm, error);
}

/* Waits for the other ranks, and for no file: steps that are not written everywhere are published later. */
static inline int penstock_mpi_history_end_step(penstock_history* history, double time, MPI_Comm comm,
                                                penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    if (error == NULL) error = &own;
    const int code = penstock_mpi_agreed(penstock_history_end_step(history, time, error), comm, error);
    return code != PENSTOCK_OK ? code : penstock_mpi_history_publish(history, comm, error);
}

/* The history is gone afterwards on every rank, also on failure. */
static inline int penstock_mpi_history_close(penstock_history* history, MPI_Comm comm, penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    if (error == NULL) error = &own;
    int code = penstock_mpi_agreed(penstock_history_wait(history, error), comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_history_publish(history, comm, error);
    if (code != PENSTOCK_OK) {
        penstock_history_abandon(history);
        return code;
    }
    return penstock_mpi_agreed(penstock_history_close(history, error), comm, error);
}

static inline penstock_snapshot_options penstock_mpi_snapshot_options(MPI_Comm comm) {
    penstock_snapshot_options options = PENSTOCK_SNAPSHOT_OPTIONS_INIT;
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    options.process = (uint32_t)rank;
    options.processes = (uint32_t)ranks;
    return options;
}

/* How many rows each rank has, for penstock_snapshot_dataset.process_rows. all: room for a number of each. */
static inline void penstock_mpi_rows(uint64_t rows, uint64_t* all, MPI_Comm comm) {
    MPI_Allgather(&rows, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, comm);
}

/* Not for programs. Where rank 0 has begun, on all ranks: PENSTOCK_MPI_PLACE bytes. */
enum { PENSTOCK_MPI_PLACE = 4096 };
static inline int penstock_mpi_place(penstock_snapshot* snapshot, char* place, MPI_Comm comm, penstock_error* error) {
    penstock_text text = {place, PENSTOCK_MPI_PLACE, 0};
    int rank = 0;
    memset(place, 0, PENSTOCK_MPI_PLACE);
    MPI_Comm_rank(comm, &rank);
    int code = rank == 0 ? penstock_snapshot_begin(snapshot, NULL, error) : PENSTOCK_OK;
    if (rank == 0 && code == PENSTOCK_OK) code = penstock_snapshot_place(snapshot, &text, error);
    code = penstock_mpi_agreed(code, comm, error);
    if (code == PENSTOCK_OK) MPI_Bcast(place, PENSTOCK_MPI_PLACE, MPI_CHAR, 0, comm);
    return code;
}

/* Each rank gives its rows; fields of datasets without process_rows are those of rank 0, or with file_each its own. The
 * files get their names when all ranks have written; after a failure those that had the names stay as they were. */
static inline int penstock_mpi_snapshot_write(penstock_snapshot* snapshot, const penstock_snapshot_field* fields,
                                              uint64_t count, MPI_Comm comm, penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    char place[PENSTOCK_MPI_PLACE];
    uint64_t digest = 0;
    int rank = 0, ranks = 1;
    if (error == NULL) error = &own;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (ranks == 1) return penstock_snapshot_write(snapshot, fields, count, NULL, error);
    int code = penstock_mpi_agreed(penstock_snapshot_digest(snapshot, &digest, error), comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_same(digest, comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_place(snapshot, place, comm, error);
    if (code != PENSTOCK_OK) {
        penstock_snapshot_abandon(snapshot);
        return code;
    }
    code = penstock_mpi_agreed(rank != 0 ? penstock_snapshot_begin(snapshot, place, error) : PENSTOCK_OK, comm, error);
    if (code == PENSTOCK_OK) {
        code = penstock_mpi_agreed(penstock_snapshot_write(snapshot, fields, count, NULL, error), comm, error);
    }
    if (code == PENSTOCK_OK) {
        code = penstock_mpi_agreed(rank != 0 ? penstock_snapshot_commit(snapshot, error) : PENSTOCK_OK, comm, error);
    }
    if (code == PENSTOCK_OK) {
        code = penstock_mpi_agreed(rank == 0 ? penstock_snapshot_commit(snapshot, error) : PENSTOCK_OK, comm, error);
    }
    if (code != PENSTOCK_OK) penstock_snapshot_abandon(snapshot);
    return code;
}

/* The device for this rank: the ranks of a machine take its GPUs in turn. "host" without a GPU. */
static inline int penstock_mpi_local_device(MPI_Comm comm, penstock_text* name, penstock_error* error) {
    MPI_Comm machine = MPI_COMM_NULL;
    int rank = 0;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &rank);
    MPI_Comm_free(&machine);
    return penstock_local_device((uint32_t)rank, name, error);
}

#endif /* PENSTOCK_MPI_H */
