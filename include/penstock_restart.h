/* Restarts from C: all that a model needs to go on, in two files of which one is always whole: NAME.0 and NAME.1.
 *
 * A restart is told once which fields the model has, and where they lie in memory of the device or of the host.
 * penstock_restart_write stores them as the next generation, in the place of the older one of the two, once all of it
 * is on stable storage. penstock_restart_read fills the memory from the newest generation, compares the checksum of
 * each block, and passes over a generation that is damaged for the older one, which the facts tell. The files are HDF5.
 *
 *     penstock_restart_open(context, "run/restart", NULL, &restart, &error);
 *     penstock_restart_set_field(restart, &density, &error);
 *     penstock_restart_find(restart, &found, &error);
 *     if (found) penstock_restart_read(restart, &facts, &error);
 *     each interval:  penstock_restart_set_attribute(restart, &step, &error); penstock_restart_write(restart, ...);
 *
 * Programs of MPI: see penstock_mpi.h. The conventions of penstock.h hold, and one more: calls of one restart come from
 * one thread.
 */
#ifndef PENSTOCK_RESTART_H
#define PENSTOCK_RESTART_H

#include "penstock.h"
#include "penstock_snapshot.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct penstock_restart penstock_restart;

typedef struct penstock_restart_options {
    uint64_t struct_size;
    const char* path;    /* of the data, as in penstock_request; null: the context's, else the policy's */
    uint32_t process;    /* the number of this process among those that write and read the files */
    uint32_t processes;  /* 0: one */
    int32_t memory;      /* of all fields: PENSTOCK_DEVICE, or PENSTOCK_SYSTEM for fields of the host */
    int32_t not_durable; /* a power cut may take the last generations */
} penstock_restart_options;
#define PENSTOCK_RESTART_OPTIONS_INIT \
    { sizeof(penstock_restart_options), 0, 0, 0, 0, 0 }

/* A field and the box of it that this process has, whose elements lie one behind the other in C order. Particles are
 * rows: the box is so many of them. */
typedef struct penstock_restart_field {
    uint64_t struct_size;
    const char* name;      /* groups in it are groups of the file, e.g. "gas/positions" */
    const char* dtype;     /* e.g. "float64", "uint64" */
    void* data;            /* the first element of the box; a write changes nothing there */
    const uint64_t* shape; /* rank lengths of all processes together, in C order */
    const uint64_t* start; /* where the box begins; null: at the first element */
    const uint64_t* count; /* elements of the box along each dimension; null: up to the end of the field */
    uint64_t rank;
} penstock_restart_field;
#define PENSTOCK_RESTART_FIELD_INIT \
    { sizeof(penstock_restart_field), 0, 0, 0, 0, 0, 0, 0 }

typedef struct penstock_restart_facts {
    uint64_t struct_size;
    uint64_t generation; /* that was written or read: the first one is 1 */
    uint64_t data_bytes; /* of this process */
    double seconds;
    penstock_text* passed_over; /* in; null, or where it is told why a file was not taken; empty: both are whole */
    penstock_text* evidence;    /* in; null, or where the evidence of the transfer goes as JSON */
    int32_t is_locked;          /* of a write: other writers of the name are refused; 0: there are no locks there */
    int32_t reserved;
} penstock_restart_facts;
#define PENSTOCK_RESTART_FACTS_INIT \
    { sizeof(penstock_restart_facts), 0, 0, 0, 0, 0, 0, 0 }

/* Looks at no file. options may be null. Give back with penstock_restart_free. */
int penstock_restart_open(const penstock_context* context, const char* name, const penstock_restart_options* options,
                          penstock_restart** restart, penstock_error* error);
/* For all writes and reads to come; replaces a field, or an attribute, of its name. All processes give the same but
 * boxes and memory. */
int penstock_restart_set_field(penstock_restart* restart, const penstock_restart_field* field, penstock_error* error);
int penstock_restart_set_attribute(penstock_restart* restart, const penstock_snapshot_attribute* attribute,
                                   penstock_error* error);
/* Forgets fields and attributes that were set. */
int penstock_restart_clear(penstock_restart* restart, penstock_error* error);
/* Fields are made, and used after a read, on this stream, a cudaStream_t. Null, as at first: the default one. */
int penstock_restart_use_stream(penstock_restart* restart, void* stream, penstock_error* error);
/* For one process. facts may be null. After an error both generations are as they were. From the first generation on
 * the name is that of this restart, until it is freed or its process ends: other writers, of this process too, are
 * refused. Of several processes the first one has it. */
int penstock_restart_write(penstock_restart* restart, penstock_restart_facts* facts, penstock_error* error);

/* Looks for the newest generation: found is 0 where there is none. An error where files are there and none is whole. */
int penstock_restart_find(penstock_restart* restart, int32_t* found, penstock_error* error);
/* Tells of a field of the generation that was found or read: rank lengths in C order, and the type. shape: room for
 * PENSTOCK_MOST_DIMENSIONS; dtype may be null. */
int penstock_restart_stored(const penstock_restart* restart, const char* field, uint64_t* shape, uint64_t* rank,
                            penstock_text* dtype, penstock_error* error);
/* An attribute of it: numbers of that type, which fill all of the bytes. */
int penstock_restart_get_numbers(const penstock_restart* restart, const char* name, const char* dtype, void* values,
                                 uint64_t bytes, penstock_error* error);
int penstock_restart_get_text(const penstock_restart* restart, const char* name, penstock_text* text,
                              penstock_error* error);
/* Fills the memory of all fields that are set. Where the newest generation is damaged it takes the older one, whose
 * shapes and attributes may be others: an error says so, and the next read goes on with that one. */
int penstock_restart_read(penstock_restart* restart, penstock_restart_facts* facts, penstock_error* error);

/* A write in parts, for several processes: penstock_mpi.h calls these. The digest is the same in all processes that
 * make the same file. begin: process 0 first, with part null, which gives the name that the file has for now to `name`;
 * the others give that as part. move writes the boxes of this process, and gives its checksums: sums belongs to the
 * restart until commit or abandon, and has count numbers; the restart's own are joined with those of others by
 * exclusive or, coverage by addition. commit is for process 0, when all have moved. abandon ends a write. */
int penstock_restart_digest(const penstock_restart* restart, uint64_t* digest, penstock_error* error);
int penstock_restart_begin(penstock_restart* restart, const char* part, penstock_text* name, penstock_error* error);
int penstock_restart_move(penstock_restart* restart, uint32_t** sums, uint64_t* count, uint64_t* coverage,
                          penstock_error* error);
int penstock_restart_commit(penstock_restart* restart, const uint32_t* sums, uint64_t count, uint64_t coverage,
                            penstock_restart_facts* facts, penstock_error* error);
int penstock_restart_abandon(penstock_restart* restart, penstock_error* error);
/* A read in parts: of the generation that was found. An empty fault says that all is right; else the processes agree to
 * pass over it, which finds the other generation. generation: its number; 0 where none was found. */
int penstock_restart_generation(const penstock_restart* restart, uint64_t* generation, penstock_error* error);
int penstock_restart_read_found(penstock_restart* restart, penstock_text* fault, penstock_restart_facts* facts,
                                penstock_error* error);
int penstock_restart_pass_over(penstock_restart* restart, const char* fault, penstock_error* error);
void penstock_restart_free(penstock_restart* restart);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_RESTART_H */
