/* Histories, snapshots and restarts of MPI programs: one file, of which each rank writes its part, or for snapshots a
 * file each. Functions of a header; the library has no MPI.
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
 *     penstock_mpi_snapshot_sort_by_cells(snapshot, &cells, positions, types, comm, &error); (where it has cells)
 *     penstock_mpi_snapshot_write(snapshot, fields, count, comm, &error);
 *
 *     penstock_restart_options options = penstock_mpi_restart_options(comm);
 *     penstock_restart_open(context, "run/restart", &options, &restart, &error);
 *     penstock_restart_set_field(restart, &field, &error);      (shape of all ranks; start and count of this one)
 *     penstock_mpi_restart_find(restart, &found, comm, &error);
 *     if (found) penstock_mpi_restart_read(restart, &facts, comm, &error);
 *     each interval:  penstock_mpi_restart_write(restart, &facts, comm, &error);
 *
 * A restart is read by any number of ranks, whatever number wrote it. Where one rank finds its generation damaged, all
 * take the older one.
 *
 * Functions named penstock_mpi_ are collective: all ranks of comm call them, and all get the same code. Where one rank
 * fails, the others have its message. A put is of one rank: where it fails, end the step all the same, and all are
 * told; or end all ranks by MPI_Abort. A step that one rank cannot end is left out on all of them, and the next put
 * begins another. A begin that refuses definitions makes no file, and a rank that has not begun refuses every put.
 * Plain MPI-1 calls from the calling thread: MPI_THREAD_MULTIPLE is not needed. A step is published when every rank has
 * written its part, at the latest by close. Ranks may have empty boxes, and no particles.
 */
#ifndef PENSTOCK_MPI_H
#define PENSTOCK_MPI_H

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "penstock_history.h"
#include "penstock_restart.h"
#include "penstock_snapshot.h"

/* Not for programs. The number of this rank, and how many there are. */
static inline void penstock_mpi_number(MPI_Comm comm, uint32_t* process, uint32_t* processes) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    *process = (uint32_t)rank;
    *processes = (uint32_t)ranks;
}

static inline penstock_history_options penstock_mpi_history_options(MPI_Comm comm) {
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_mpi_number(comm, &options.process, &options.processes);
    return options;
}

/* Not for programs. The first rank whose flag is set, which is 0 or 1; -1 where none is. */
static inline int penstock_mpi_first(int flag, MPI_Comm comm) {
    int mine[2] = {flag, 0}, first[2] = {0, 0};
    MPI_Comm_rank(comm, &mine[1]);
    MPI_Allreduce(mine, first, 1, MPI_2INT, MPI_MAXLOC, comm);
    return first[0] ? first[1] : -1;
}

/* Not for programs. The first rank that failed gives its code to all, and its message to those that did not fail. */
static inline int penstock_mpi_agreed(int code, MPI_Comm comm, penstock_error* error) {
    const int own = code, first = penstock_mpi_first(code != PENSTOCK_OK, comm);
    char text[sizeof(error->message)] = {0};
    if (first < 0) return PENSTOCK_OK;
    if (own != PENSTOCK_OK && error != NULL) memcpy(text, error->message, sizeof(text) - 1);
    MPI_Bcast(&code, 1, MPI_INT, first, comm);
    MPI_Bcast(text, (int)sizeof(text), MPI_CHAR, first, comm);
    if (own != PENSTOCK_OK || error == NULL) return code;
    error->code = code;
    snprintf(error->operation, sizeof(error->operation), "agree with rank %d", first);
    snprintf(error->cause, sizeof(error->cause), "rank %d: %.480s", first, text);
    snprintf(error->message, sizeof(error->message), "rank %d: %.2000s", first, text);
    return code;
}

/* Not for programs. Whether all ranks have one number; an error on all of them where they do not. words: what the ranks
 * do, and what to do. */
static inline int penstock_mpi_alike(uint64_t number, const char* const words[2], MPI_Comm comm,
                                     penstock_error* error) {
    uint64_t low = 0, high = 0;
    MPI_Allreduce(&number, &low, 1, MPI_UINT64_T, MPI_MIN, comm);
    MPI_Allreduce(&number, &high, 1, MPI_UINT64_T, MPI_MAX, comm);
    if (low == high) return PENSTOCK_OK;
    error->code = PENSTOCK_INVALID_ARGUMENT;
    snprintf(error->operation, sizeof(error->operation), "agree");
    snprintf(error->cause, sizeof(error->cause), "the ranks %s", words[0]);
    snprintf(error->advice, sizeof(error->advice), "%s on each", words[1]);
    snprintf(error->message, sizeof(error->message), "agree: %s; %s", error->cause, error->advice);
    return PENSTOCK_INVALID_ARGUMENT;
}

/* Not for programs. The digest is that of all ranks. */
static inline int penstock_mpi_same(uint64_t digest, MPI_Comm comm, penstock_error* error) {
    const char* const words[2] = {"define different files", "define the same dimensions, variables and attributes"};
    return penstock_mpi_alike(digest, words, comm, error);
}

/* Not for programs. An operation of MPI: the greatest common divisors. */
static inline void penstock_mpi_divisor(void* in, void* inout, int* count, MPI_Datatype* type) {
    const uint64_t* one = (const uint64_t*)in;
    uint64_t* common = (uint64_t*)inout;
    (void)type;
    for (int i = 0; i < *count; ++i) {
        for (uint64_t left = one[i]; left != 0;) {
            const uint64_t rest = common[i] % left;
            common[i] = left;
            left = rest;
        }
    }
}

/* Not for programs. The ranks of a store agree on its blocks, and that their boxes are made of them. */
static inline int penstock_mpi_history_cut(penstock_history* history, MPI_Comm comm, penstock_error* error) {
    uint64_t *cuts = NULL, count = 0, digest = 0;
    MPI_Op divisor = MPI_OP_NULL;
    int code = penstock_mpi_agreed(penstock_history_cuts(history, &cuts, &count, error), comm, error);
    if (code != PENSTOCK_OK || count == 0) return code;
    MPI_Op_create(penstock_mpi_divisor, 1, &divisor);
    MPI_Allreduce(MPI_IN_PLACE, cuts, (int)count, MPI_UINT64_T, divisor, comm);
    MPI_Op_free(&divisor);
    code = penstock_mpi_agreed(penstock_history_digest(history, &digest, error), comm, error);
    return code != PENSTOCK_OK ? code : penstock_mpi_same(digest, comm, error);
}

/* Not for programs. What begin needs to know whether the boxes of all ranks have each element once. */
static inline int penstock_mpi_history_cover(penstock_history* history, MPI_Comm comm, penstock_error* error) {
    uint64_t *sums = NULL, count = 0;
    const int code = penstock_mpi_agreed(penstock_history_coverage(history, &sums, &count, error), comm, error);
    if (code == PENSTOCK_OK && count != 0) MPI_Allreduce(MPI_IN_PLACE, sums, (int)count, MPI_UINT64_T, MPI_SUM, comm);
    return code;
}

/* Rank 0 makes the file, and the others open it. Refuses definitions that are not the same on all ranks, boxes of which
 * a store cannot be made, and boxes with gaps between them, or that overlap (may_have_gaps of the options). */
static inline int penstock_mpi_history_begin(penstock_history* history, MPI_Comm comm, penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    uint64_t digest = 0;
    int rank = 0;
    if (error == NULL) error = &own;
    int code = penstock_mpi_agreed(penstock_history_digest(history, &digest, error), comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_same(digest, comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_history_cut(history, comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_history_cover(history, comm, error);
    if (code != PENSTOCK_OK) return code;
    MPI_Comm_rank(comm, &rank);
    code = penstock_mpi_agreed(rank == 0 ? penstock_history_begin(history, error) : PENSTOCK_OK, comm, error);
    if (code != PENSTOCK_OK) return code;
    return penstock_mpi_agreed(rank != 0 ? penstock_history_begin(history, error) : PENSTOCK_OK, comm, error);
}

/* Not for programs. Publishes what every rank has written, also where one has failed: `code` is that of this rank, and
 * what it returns that of all. */
static inline int penstock_mpi_history_publish(penstock_history* history, int code, MPI_Comm comm,
                                               penstock_error* error) {
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    penstock_error own = PENSTOCK_ERROR_INIT;
    uint64_t steps = 0;
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    if (ranks == 1) return code; /* the history does it */
    int told = penstock_history_describe(history, &facts, &own);
    MPI_Allreduce(&facts.steps_written, &steps, 1, MPI_UINT64_T, MPI_MIN, comm);
    if (told == PENSTOCK_OK && steps != 0) told = penstock_history_publish(history, steps, &own);
    if (code == PENSTOCK_OK && told != PENSTOCK_OK) {
        code = told;
        *error = own;
    }
    return penstock_mpi_agreed(code, comm, error);
}

/* Not for programs. Whether all ranks have one time; an error on all of them where they do not. */
static inline int penstock_mpi_one_time(double time, MPI_Comm comm, penstock_error* error) {
    double ends[2] = {time, -time};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_DOUBLE, MPI_MAX, comm);
    if (ends[0] == -ends[1]) return PENSTOCK_OK;
    error->code = PENSTOCK_INVALID_ARGUMENT;
    snprintf(error->operation, sizeof(error->operation), "end step");
    snprintf(error->cause, sizeof(error->cause), "the ranks give different times, from %.17g to %.17g", -ends[1],
             ends[0]);
    snprintf(error->advice, sizeof(error->advice), "give the same time on each");
    snprintf(error->message, sizeof(error->message), "end step: %s; %s", error->cause, error->advice);
    return PENSTOCK_INVALID_ARGUMENT;
}

/* Waits for the other ranks, and for no file: steps that are not written everywhere are published later. The time is
 * the same on all ranks. A step that one of them cannot end is left out on all. */
static inline int penstock_mpi_history_end_step(penstock_history* history, double time, MPI_Comm comm,
                                                penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    if (error == NULL) error = &own;
    int code = penstock_mpi_agreed(penstock_history_check_step(history, time, error), comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_one_time(time, comm, error);
    if (code == PENSTOCK_OK) {
        code = penstock_history_end_step(history, time, error);
    } else {
        penstock_history_drop_step(history, NULL);
    }
    return penstock_mpi_history_publish(history, code, comm, error);
}

/* The history is gone afterwards on every rank, also on failure. */
static inline int penstock_mpi_history_close(penstock_history* history, MPI_Comm comm, penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    if (error == NULL) error = &own;
    int code = penstock_mpi_agreed(penstock_history_wait(history, error), comm, error);
    code = penstock_mpi_history_publish(history, code, comm, error);
    if (code != PENSTOCK_OK) {
        penstock_history_abandon(history);
        return code;
    }
    return penstock_mpi_agreed(penstock_history_close(history, error), comm, error);
}

static inline penstock_snapshot_options penstock_mpi_snapshot_options(MPI_Comm comm) {
    penstock_snapshot_options options = PENSTOCK_SNAPSHOT_OPTIONS_INIT;
    penstock_mpi_number(comm, &options.process, &options.processes);
    return options;
}

/* How many rows each rank has, for penstock_snapshot_dataset.process_rows. all: room for a number of each. */
static inline void penstock_mpi_rows(uint64_t rows, uint64_t* all, MPI_Comm comm) {
    MPI_Allgather(&rows, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, comm);
}

/* Not for programs. What each rank has counted becomes what all have. code: of this rank's count. */
static inline int penstock_mpi_add_counted_cells(penstock_snapshot* snapshot, int code,
                                                 const penstock_snapshot_cell_sums* sums, MPI_Comm comm,
                                                 penstock_error* error) {
    const char* const words[2] = {"give different cells", "give the same grid and types"};
    const uint64_t most = 1u << 30; /* MPI takes an int */
    code = penstock_mpi_agreed(code, comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_alike(sums->digest, words, comm, error);
    if (code != PENSTOCK_OK) return code;
    for (uint64_t at = 0; at < sums->total_count; at += most) {
        const int part = (int)(sums->total_count - at < most ? sums->total_count - at : most);
        MPI_Allreduce(MPI_IN_PLACE, sums->totals + at, part, MPI_INT64_T, MPI_SUM, comm);
    }
    for (uint64_t at = 0; at < sums->extreme_count; at += most) {
        const int part = (int)(sums->extreme_count - at < most ? sums->extreme_count - at : most);
        MPI_Allreduce(MPI_IN_PLACE, sums->extremes + at, part, MPI_DOUBLE, MPI_MAX, comm);
    }
    return penstock_mpi_agreed(penstock_snapshot_add_counted_cells(snapshot, error), comm, error);
}

/* The group Cells of SWIFT, of the particles of all ranks: count types, after their datasets. Refuses grids and types
 * that are not the same on all ranks, particles that do not lie sorted by cell, and a cell of two ranks. */
static inline int penstock_mpi_snapshot_add_cells(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                                  const penstock_snapshot_positions* positions, uint64_t count,
                                                  MPI_Comm comm, penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    penstock_snapshot_cell_sums sums = PENSTOCK_SNAPSHOT_CELL_SUMS_INIT;
    if (error == NULL) error = &own;
    const int code = penstock_snapshot_count_cells(snapshot, cells, positions, count, &sums, error);
    return penstock_mpi_add_counted_cells(snapshot, code, &sums, comm, error);
}

/* In its place where particles of a rank lie in any order: penstock_mpi_snapshot_write puts them into that of cells, as
 * penstock_snapshot_sort_by_cells says. Each rank calls one of the two. */
static inline int penstock_mpi_snapshot_sort_by_cells(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                                      const penstock_snapshot_positions* positions, uint64_t count,
                                                      MPI_Comm comm, penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    penstock_snapshot_cell_sums sums = PENSTOCK_SNAPSHOT_CELL_SUMS_INIT;
    if (error == NULL) error = &own;
    const int code = penstock_snapshot_sort_and_count(snapshot, cells, positions, count, &sums, error);
    return penstock_mpi_add_counted_cells(snapshot, code, &sums, comm, error);
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
    /* Rank 0 commits last where each has a file; of one file it gives the name, which may fail, and commits first. */
    for (int turn = 0; code == PENSTOCK_OK && turn < 2; ++turn) {
        const int is_turn = (rank == 0) == ((turn == 0) == (place[0] != 0));
        code = penstock_mpi_agreed(is_turn ? penstock_snapshot_commit(snapshot, error) : PENSTOCK_OK, comm, error);
    }
    if (code != PENSTOCK_OK) penstock_snapshot_abandon(snapshot);
    return code;
}

static inline penstock_restart_options penstock_mpi_restart_options(MPI_Comm comm) {
    penstock_restart_options options = PENSTOCK_RESTART_OPTIONS_INIT;
    penstock_mpi_number(comm, &options.process, &options.processes);
    return options;
}

/* Not for programs. Joins the checksums of all ranks on rank 0, which gives the file its name. */
static inline int penstock_mpi_restart_join(penstock_restart* restart, penstock_restart_facts* facts, MPI_Comm comm,
                                            penstock_error* error) {
    uint32_t* sums = NULL;
    uint64_t count = 0, coverage = 0, whole = 0;
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    int code = penstock_restart_move(restart, &sums, &count, &coverage, error);
    code = penstock_mpi_agreed(code, comm, error);
    if (code != PENSTOCK_OK) return code;
    MPI_Reduce(&coverage, &whole, 1, MPI_UINT64_T, MPI_SUM, 0, comm);
    for (uint64_t at = 0; at < count; at += 1u << 20) {
        const int part = (int)(count - at < (1u << 20) ? count - at : 1u << 20);
        MPI_Reduce(rank == 0 ? MPI_IN_PLACE : sums + at, sums + at, part, MPI_UINT32_T, MPI_BXOR, 0, comm);
    }
    if (rank == 0) code = penstock_restart_commit(restart, sums, count, whole, facts, error);
    return penstock_mpi_agreed(code, comm, error);
}

/* The next generation. Refuses fields and attributes that are not the same on all ranks. facts may be null; those of
 * rank 0 tell the generation. After an error both generations are as they were. */
static inline int penstock_mpi_restart_write(penstock_restart* restart, penstock_restart_facts* facts, MPI_Comm comm,
                                             penstock_error* error) {
    const char* const words[2] = {"write different fields or attributes",
                                  "give the same names, types, shapes and attributes"};
    penstock_error own = PENSTOCK_ERROR_INIT;
    char part[4096] = {0};
    penstock_text name = {part, sizeof(part), 0};
    uint64_t digest = 0;
    int rank = 0;
    if (error == NULL) error = &own;
    MPI_Comm_rank(comm, &rank);
    int code = penstock_mpi_agreed(penstock_restart_digest(restart, &digest, error), comm, error);
    if (code == PENSTOCK_OK) code = penstock_mpi_alike(digest, words, comm, error);
    if (code != PENSTOCK_OK) return code;
    code = rank == 0 ? penstock_restart_begin(restart, NULL, &name, error) : PENSTOCK_OK;
    code = penstock_mpi_agreed(code, comm, error);
    if (code == PENSTOCK_OK) {
        MPI_Bcast(part, (int)sizeof(part), MPI_CHAR, 0, comm);
        code = rank != 0 ? penstock_restart_begin(restart, part, NULL, error) : PENSTOCK_OK;
        code = penstock_mpi_agreed(code, comm, error);
    }
    if (code == PENSTOCK_OK) code = penstock_mpi_restart_join(restart, facts, comm, error);
    penstock_restart_abandon(restart, NULL); /* what has ended stays as it is */
    return code;
}

/* found is 0 where there is none. Refuses ranks that see different files. */
static inline int penstock_mpi_restart_find(penstock_restart* restart, int32_t* found, MPI_Comm comm,
                                            penstock_error* error) {
    const char* const words[2] = {"find different generations", "give the same file system and name"};
    penstock_error own = PENSTOCK_ERROR_INIT;
    uint64_t generation = 0;
    if (error == NULL) error = &own;
    int code = penstock_restart_find(restart, found, error);
    if (code == PENSTOCK_OK && *found) code = penstock_restart_generation(restart, &generation, error);
    code = penstock_mpi_agreed(code, comm, error);
    return code != PENSTOCK_OK ? code : penstock_mpi_alike(generation, words, comm, error);
}

/* Reads what was found. Where a rank finds it damaged, all pass over it: facts tell the generation that was read. */
static inline int penstock_mpi_restart_read(penstock_restart* restart, penstock_restart_facts* facts, MPI_Comm comm,
                                            penstock_error* error) {
    penstock_error own = PENSTOCK_ERROR_INIT;
    if (error == NULL) error = &own;
    for (;;) {
        char room[1024] = {0};
        penstock_text fault = {room, sizeof(room), 0};
        int code = penstock_mpi_agreed(penstock_restart_read_found(restart, &fault, facts, error), comm, error);
        if (code != PENSTOCK_OK) return code;
        const int damaged = penstock_mpi_first(room[0] != 0, comm);
        if (damaged < 0) return PENSTOCK_OK;
        MPI_Bcast(room, (int)sizeof(room), MPI_CHAR, damaged, comm);
        code = penstock_mpi_agreed(penstock_restart_pass_over(restart, room, error), comm, error);
        if (code != PENSTOCK_OK) return code;
    }
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
