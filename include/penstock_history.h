/* Histories from C: fields of a running model, step by step to a file that other programs read.
 *
 * A history owns slots of memory, each as large as a step in the file. penstock_history_put packs a field into the
 * current slot: it cuts the halo, transposes, converts and sums, on the device that the field is on, and returns when
 * the caller may change the field. penstock_history_end_step returns at once: a thread writes the data, then the time,
 * and then lets readers see the step. A step that fails is told by the next call and by close, with its number and its
 * variable. The steps before it stay readable, and so they do when the process ends at any moment.
 *
 * Several processes write one file with a history each: process and processes in the options number them, and each
 * variable has the box of its process in global_shape. Process 0 begins first, and makes the file; before that, those
 * that write a Zarr store agree on their cuts. A step is published
 * when each process has written its part: they agree on the smallest steps_written, and all publish so many.
 * penstock_mpi.h does this with MPI.
 *
 * The conventions of penstock.h hold, and one more: calls of one history come from one thread.
 */
#ifndef PENSTOCK_HISTORY_H
#define PENSTOCK_HISTORY_H

#include "penstock.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct penstock_history penstock_history;

/* Values of penstock_history_variable.statistic: it is made of all fields put between two ends of steps. */
enum { PENSTOCK_NO_STATISTIC = 0, PENSTOCK_MEAN = 1, PENSTOCK_MINIMUM = 2, PENSTOCK_MAXIMUM = 3 };

/* A history that has no memory for a step and no thread: penstock_history_put writes the field before it returns. For
 * processes that have no core to spare, and for steps that memory has no room for twice. */
#define PENSTOCK_NO_SLOTS UINT32_MAX

typedef struct penstock_history_options {
    uint64_t struct_size;
    const char* format; /* null: "cdf5", classic netCDF with 64-bit counts; "cdf2", "netcdf4", "hdf5", "zarr", "raw" */
    const char* time_units;  /* "seconds since 2000-01-01 00:00:00"; null: the time has no units */
    const char* calendar;    /* one of the CF conventions; null: "standard" */
    const char* path;        /* of the data, as in penstock_request; null: the context's, else the policy's */
    double start_time;       /* where the first interval of a statistic begins */
    uint32_t slots;          /* 1 to 64; 0: 2; PENSTOCK_NO_SLOTS: put writes, and nothing is compressed */
    int32_t memory;          /* of fields and slots: PENSTOCK_DEVICE, or PENSTOCK_SYSTEM for fields of the host */
    int32_t durable;         /* a step that readers see survives a power cut */
    int32_t refuse_existing; /* an existing file of that name is an error */
    uint32_t process;        /* the number of this process among those that write the file */
    uint32_t processes;      /* 0: one */
    /* "gzip", also called "deflate", "zstd" or "lz4", in "netcdf4", "hdf5" and "zarr"; null: "none". The thread of the
     * history compresses, on the cores of the host. Of several processes in "zarr" alone. */
    const char* compression;
    uint32_t compression_level; /* gzip 1 to 9, zstd 1 to 22; 0: 4 and 3 */
    int32_t no_shuffle;         /* bytes of an element stay together */
    uint32_t encode_threads;    /* that compress a step; 0: one for each CPU of this process */
    int32_t may_have_gaps;      /* elements of global_shape may be in no box, as those of land in an ocean */
} penstock_history_options;
#define PENSTOCK_HISTORY_OPTIONS_INIT \
    { sizeof(penstock_history_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* A field with a value for each step. Each list has `rank` entries, in C order of the memory: the last is of the
 * nearest elements. The time is no dimension of it: the file has it as its first one. */
typedef struct penstock_history_variable {
    uint64_t struct_size;
    const char* name;
    const char* dtype;                  /* in the file, e.g. "float32" */
    const char* source_dtype;           /* in memory; null: the same */
    const char* const* dimensions;      /* names; those of one name have one length */
    const uint64_t* shape;              /* elements that are written */
    const uint64_t* halo_low;           /* elements in memory before them; null: none */
    const uint64_t* halo_high;          /* elements in memory behind them; null: none */
    const int64_t* strides_bytes;       /* in memory; null: all elements lie one behind the other */
    const char* const* file_dimensions; /* their order in the file; null: as in memory */
    const uint64_t* global_shape;       /* of all processes' boxes together; null: process 0 writes it all */
    const uint64_t* start;              /* where the box of this process begins there; null without global_shape */
    uint32_t rank;                      /* at most 6 */
    int32_t statistic;
    uint32_t keep_bits;          /* of the mantissa, for files that compress well; 0: all */
    int32_t reserved;            /* zero */
    const char* compression;     /* as in the options; null: the compression, level and shuffle of these */
    const uint64_t* chunk_shape; /* of compressed chunks; null: layers of the nearest dimensions, 1 MiB at most */
    uint32_t compression_level;  /* of `compression` */
    int32_t no_shuffle;          /* of `compression` */
} penstock_history_variable;
#define PENSTOCK_HISTORY_VARIABLE_INIT \
    { sizeof(penstock_history_variable), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Values that do not change: coordinates, heights, masks. They are in the file from its first moment on. */
typedef struct penstock_history_constant {
    uint64_t struct_size;
    const char* name;
    const char* dtype;
    const char* const* dimensions; /* rank names */
    const uint64_t* shape;         /* rank elements */
    const void* values;            /* all, in host memory and in C order */
    uint64_t rank;                 /* 0: one value */
    uint64_t bytes;                /* of the values */
} penstock_history_constant;
#define PENSTOCK_HISTORY_CONSTANT_INIT \
    { sizeof(penstock_history_constant), 0, 0, 0, 0, 0, 0, 0 }

typedef struct penstock_attribute {
    uint64_t struct_size;
    const char* name;
    const char* text;      /* null: it is numbers */
    const char* dtype;     /* of the numbers in the file: "float32", "float64", "int32" */
    const double* numbers; /* count of them */
    uint64_t count;
} penstock_attribute;
#define PENSTOCK_ATTRIBUTE_INIT \
    { sizeof(penstock_attribute), 0, 0, 0, 0, 0 }

/* One dimension of the grid of a model, of the whole domain. */
typedef struct penstock_history_grid_axis {
    const double* faces;          /* positions of the faces of all cells, those of the halo at both ends too */
    uint64_t face_count;          /* one more than there are cells */
    uint64_t halo;                /* cells of it at each end */
    const double* centre_factors; /* how much the boundary damps in each cell, face_count - 1; null: not at all */
    const double* face_factors;   /* and on each face */
    uint32_t processes;           /* that share the cells, each as many; 0: one */
    int32_t is_periodic;
} penstock_history_grid_axis;

/* What the layout of a known model says of a history besides its fields. */
typedef struct penstock_history_preset {
    uint64_t struct_size;
    const char* layout; /* null: "scale", the only one: SCALE-RM, with its cartesian grid */
    const char* title;  /* these four may be null */
    const char* source;
    const char* institution;
    const char* mapping; /* the projection of the map, as CF names it in grid_mapping_name */
    penstock_history_grid_axis x, y, z;
    const double* ocean_faces; /* of layers, in m below the ground; null: there are none */
    const double* land_faces;
    const double* urban_faces;
    const double* pressures_hpa; /* of pressure levels; null: there are none */
    uint64_t ocean_face_count, land_face_count, urban_face_count, pressure_count;
    uint32_t process;     /* the number of this process: along x first */
    int32_t has_boundary; /* fields have the halo too at those ends of the domain that are not periodic */
} penstock_history_preset;
#define PENSTOCK_HISTORY_PRESET_INIT \
    { sizeof(penstock_history_preset), 0, 0, 0, 0, 0, {0}, {0}, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct penstock_history_facts {
    uint64_t struct_size;
    uint64_t steps_ended;
    uint64_t steps_written;   /* whose data, of this process, are in the file */
    uint64_t steps_published; /* that readers see */
    uint64_t step_bytes;      /* of one step in the file, where nothing is compressed */
    uint64_t slot_bytes;      /* of all slots; without slots: where fields are converted */
    double put_seconds;       /* in put and end_step, without waits */
    double wait_seconds;      /* for a free slot: the file is slower than the model */
    double write_seconds;     /* in the thread, from a packed slot to a step that readers see */
    penstock_text* evidence;  /* in; null, or where the evidence of the last step goes as JSON */
    uint64_t stored_bytes;    /* of all steps that were written, as the file has them */
    double encode_seconds;    /* of write_seconds, for the compression */
} penstock_history_facts;
#define PENSTOCK_HISTORY_FACTS_INIT \
    { sizeof(penstock_history_facts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The file appears at the first put, or at begin, whole and without steps. options may be null. Give back with
 * penstock_history_close or penstock_history_abandon. */
int penstock_history_open(const penstock_context* context, const char* name, const penstock_history_options* options,
                          penstock_history** history, penstock_error* error);
/* These four come before the first put. variable of an attribute: null for the file; "time" is that of the history. */
int penstock_history_define(penstock_history* history, const penstock_history_variable* variable,
                            penstock_error* error);
int penstock_history_define_constant(penstock_history* history, const penstock_history_constant* constant,
                                     penstock_error* error);
int penstock_history_set_attribute(penstock_history* history, const char* variable, const penstock_attribute* attribute,
                                   penstock_error* error);
/* Coordinates, and attributes of the file and of all that was defined before, as the model writes them. What the caller
 * has set goes before them, and so do attributes that are set later. The times have bounds. */
int penstock_history_use_preset(penstock_history* history, const penstock_history_preset* preset,
                                penstock_error* error);
/* Makes the file and the slots; of one process the first put does it where this was not called. Definitions end with
 * it. */
int penstock_history_begin(penstock_history* history, penstock_error* error);
/* The same number in all processes that make the same file. */
int penstock_history_digest(const penstock_history* history, uint64_t* digest, penstock_error* error);
/* Elements along one dimension that a process has, of boxes of which any store can be made: start and shape of a
 * variable. Each process has as many as the others; the last one that has some may have fewer, those behind none. */
int penstock_history_split(uint64_t length, uint32_t processes, uint32_t process, uint64_t* start, uint64_t* shape,
                           penstock_error* error);
/* For several processes and a Zarr store, where each writes files of its own: numbers of whose multiples each box of
 * this process begins and ends, one for each dimension of each variable with global_shape; 0: any. Before begin they
 * become the greatest common divisors of those of all processes, and digest then refuses boxes that do not go together.
 * They are the history's until the next definition. count is 0 of other formats, and of one process. */
int penstock_history_cuts(penstock_history* history, uint64_t** cuts, uint64_t* count, penstock_error* error);
/* For several processes: a number for each variable with global_shape. Before begin they become the sums of those of
 * all processes, which may overflow, and begin then refuses boxes with gaps between them, or that overlap. They are the
 * history's until the next definition. count is 0 with may_have_gaps, and of one process. */
int penstock_history_coverage(penstock_history* history, uint64_t** sums, uint64_t* count, penstock_error* error);
/* Fields that are put from now on are made on this stream, a cudaStream_t: its work comes first. A put then does not
 * wait for the device: later work of the stream waits until the field is packed, and may change the field. Null, as at
 * first: the default stream, and a put waits. */
int penstock_history_use_stream(penstock_history* history, void* stream, penstock_error* error);
/* data: the first element of the array in memory, halo included. */
int penstock_history_put(penstock_history* history, const char* variable, const void* data, penstock_error* error);
int penstock_history_end_step(penstock_history* history, double time, penstock_error* error);
/* For several processes: the error that end_step would give. Where it gives none, an end_step of the same time that
 * follows gives none. Each does this first; where one of them cannot end the step all drop it, that is forget what was
 * put since the last end. Else step 5 of one would be step 6 of another. */
int penstock_history_check_step(penstock_history* history, double time, penstock_error* error);
int penstock_history_drop_step(penstock_history* history, penstock_error* error);
/* Until the data of every step that ended are written, and seen by readers if one process writes the file. */
int penstock_history_wait(penstock_history* history, penstock_error* error);
/* For several processes alone: readers see so many steps from now on. An error of a step that failed comes when they
 * do. */
int penstock_history_publish(penstock_history* history, uint64_t steps, penstock_error* error);
int penstock_history_describe(const penstock_history* history, penstock_history_facts* facts, penstock_error* error);
/* Waits, closes the file, and reports a step that failed. The handle is gone afterwards, also on failure: as with
 * free(), nothing tells a call with it from any other. Set it to null: calls with null are refused. */
int penstock_history_close(penstock_history* history, penstock_error* error);
/* Frees the handle only: steps that ended are written, and their errors are lost. */
void penstock_history_abandon(penstock_history* history);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_HISTORY_H */
