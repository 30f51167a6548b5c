/* Snapshots from C: all fields of a model at one moment, written by one call to a new HDF5 file.
 *
 * A snapshot is told first what the file holds: groups, links, attributes, and datasets with type and shape.
 * penstock_snapshot_write then takes a pointer for each dataset, to memory of the device or of the host, and moves all
 * data in one submission. The file appears under its name, whole, when all is written; until then, and after an error,
 * a file that had the name stays as it was. h5py and all that stands on the HDF5 library read it.
 *
 * The conventions of penstock.h hold, and one more: calls of one snapshot come from one thread.
 */
#ifndef PENSTOCK_SNAPSHOT_H
#define PENSTOCK_SNAPSHOT_H

#include "penstock.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct penstock_snapshot penstock_snapshot;

typedef struct penstock_snapshot_options {
    uint64_t struct_size;
    const char* path;        /* of the data, as in penstock_request; null: the context's, else the policy's */
    int32_t memory;          /* of all fields: PENSTOCK_DEVICE, or PENSTOCK_SYSTEM for fields of the host */
    int32_t durable;         /* when write returns, the file survives a power cut */
    int32_t refuse_existing; /* an existing file of that name is an error */
    int32_t reserved;        /* zero */
    uint32_t process;        /* the number of this process among those that write the snapshot */
    uint32_t processes;      /* 0 is 1 */
    int32_t file_each;       /* each process writes its rows to NAME.N.hdf5; else one file has the rows of all */
    int32_t virtual_file;    /* process 0 also writes NAME.hdf5, whose datasets are those of all files together */
} penstock_snapshot_options;
#define PENSTOCK_SNAPSHOT_OPTIONS_INIT \
    { sizeof(penstock_snapshot_options), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct penstock_snapshot_dataset {
    uint64_t struct_size;
    const char* path;      /* with its groups, e.g. "PartType0/Coordinates"; groups that lack are made */
    const char* dtype;     /* e.g. "float32", "uint64", "bool"; "S16": text of 16 bytes, shorter ones end in zeros */
    const uint64_t* shape; /* rank lengths, in C order: of the elements that this process has */
    uint64_t rank;
    /* Of several processes: how many rows, along the first dimension, each of them has, by its number; their rows
     * follow each other in this order. Null: all is process 0's, or where each process has a file, of each its own. */
    const uint64_t* process_rows;
    uint64_t process_count; /* of process_rows: as many as there are processes */
    uint64_t chunk_rows;    /* of a chunk; 0: the elements lie one behind the other, not in chunks */
    int32_t has_checksums;  /* chunks have a Fletcher-32, which readers compare */
    int32_t reserved;       /* zero */
} penstock_snapshot_dataset;
#define PENSTOCK_SNAPSHOT_DATASET_INIT \
    { sizeof(penstock_snapshot_dataset), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Text, or numbers. The rank tells one value (0) from an array of one value (1, and a length of 1): readers do too. */
typedef struct penstock_snapshot_attribute {
    uint64_t struct_size;
    const char* name;
    const char* dtype;        /* of numbers, e.g. "uint64", "bool"; null: it is text */
    const void* values;       /* numbers, in C order */
    const char* const* texts; /* UTF-8; one, or as many as the shape has */
    const uint64_t* shape;    /* rank lengths */
    uint32_t rank;
    uint32_t text_bytes; /* the length that all texts have, filled up with zeros; 0: of the longest */
    int32_t any_length;  /* each text is as long as it is, in the heap of the file */
    int32_t reserved;    /* zero */
} penstock_snapshot_attribute;
#define PENSTOCK_SNAPSHOT_ATTRIBUTE_INIT \
    { sizeof(penstock_snapshot_attribute), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The elements of a dataset: one behind the other in C order. */
typedef struct penstock_snapshot_field {
    const char* dataset;
    const void* data;
    uint64_t bytes;
} penstock_snapshot_field;

/* The top-level cells of SWIFT: a grid over the box, whose last dimension is the fastest. */
typedef struct penstock_snapshot_cells {
    uint64_t struct_size;
    uint64_t cells[3]; /* along each dimension */
    double box_size[3];
} penstock_snapshot_cells;
#define PENSTOCK_SNAPSHOT_CELLS_INIT                \
    {                                               \
        sizeof(penstock_snapshot_cells), {0}, { 0 } \
    }

/* The particles of one type: three numbers of each, in memory of the host. */
typedef struct penstock_snapshot_positions {
    uint64_t type;     /* of PartTypeN */
    const char* dtype; /* "float64" or "float32" */
    const void* data;
    uint64_t particles;
} penstock_snapshot_positions;

/* What the processes of a snapshot count together. The numbers are the snapshot's, until they are added. */
typedef struct penstock_snapshot_cell_sums {
    uint64_t struct_size;
    int64_t* totals; /* become the sums of those of all processes, each number for itself */
    uint64_t total_count;
    double* extremes; /* become the greatest of those of all processes */
    uint64_t extreme_count;
    uint64_t digest; /* the same in all processes that give the same grid and types */
} penstock_snapshot_cell_sums;
#define PENSTOCK_SNAPSHOT_CELL_SUMS_INIT \
    { sizeof(penstock_snapshot_cell_sums), 0, 0, 0, 0, 0 }

/* What a layout of a known code says of a snapshot besides its data. Units are those of the datasets. */
typedef struct penstock_snapshot_preset {
    uint64_t struct_size;
    const char* layout;   /* "gadget4", "swift", "arepo", "gizmo" or "gothic" */
    const char* run_name; /* these four may be null */
    const char* system;   /* the machine */
    const char* code_version;
    const char* date;    /* SWIFT writes it as "12:31:00 2026-03-01 UTC" */
    double time;         /* in the unit of time */
    double scale_factor; /* 1 / (1 + redshift) */
    double box_size[3];
    double hubble_param; /* h: in 100 km/s/Mpc */
    double omega_matter;
    double omega_lambda;
    double omega_baryon;
    double unit_length_cm;
    double unit_mass_g;
    double unit_time_s;
    double mass_table[7];    /* of each type whose particles have one mass; SWIFT: the mean at the begin */
    int32_t is_cosmological; /* coordinates are comoving */
    int32_t is_not_periodic;
} penstock_snapshot_preset;
#define PENSTOCK_SNAPSHOT_PRESET_INIT \
    { sizeof(penstock_snapshot_preset), 0, 0, 0, 0, 0, 0, 1, {0}, 1, 0, 0, 0, 1, 1, 1, {0}, 0, 0 }

typedef struct penstock_snapshot_facts {
    uint64_t struct_size;
    uint64_t file_bytes;
    uint64_t data_bytes;     /* of all fields of this process */
    double layout_seconds;   /* until the place of each byte is known */
    double write_seconds;    /* from there until the file has its name */
    penstock_text* evidence; /* in; null, or where the evidence of the transfer goes as JSON */
} penstock_snapshot_facts;
#define PENSTOCK_SNAPSHOT_FACTS_INIT \
    { sizeof(penstock_snapshot_facts), 0, 0, 0, 0, 0 }

/* Makes no file. options may be null. Give back with penstock_snapshot_free. */
int penstock_snapshot_open(const penstock_context* context, const char* name, const penstock_snapshot_options* options,
                           penstock_snapshot** snapshot, penstock_error* error);
/* The group and those above it, which may be there already. */
int penstock_snapshot_add_group(penstock_snapshot* snapshot, const char* path, penstock_error* error);
/* A soft link: another name for target, a path from the root. Nothing needs to be there. */
int penstock_snapshot_add_link(penstock_snapshot* snapshot, const char* path, const char* target,
                               penstock_error* error);
/* Another name for target, a path in that file. Neither needs to be there. */
int penstock_snapshot_add_external_link(penstock_snapshot* snapshot, const char* path, const char* file,
                                        const char* target, penstock_error* error);
int penstock_snapshot_add_dataset(penstock_snapshot* snapshot, const penstock_snapshot_dataset* dataset,
                                  penstock_error* error);
/* A dataset whose elements are given now, and not to write. They are copied, from memory of the host. */
int penstock_snapshot_add_values(penstock_snapshot* snapshot, const penstock_snapshot_dataset* dataset,
                                 const void* values, uint64_t bytes, penstock_error* error);
/* The group Cells of SWIFT, by which its readers load a part of the box: count types, after their datasets. An error
 * where the particles of a type do not lie sorted by cell, of positions that are NaN or infinite, and in snapshots of
 * several processes. After an error the snapshot may be written without the group. */
int penstock_snapshot_add_cells(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                const penstock_snapshot_positions* positions, uint64_t count, penstock_error* error);
/* Several processes do this in two steps: each counts its own particles, and adds the cells when the sums are those of
 * all. Each cell is of one process, which has all its particles of a type. Else the second step is an error.
 * penstock_mpi.h does both. */
int penstock_snapshot_count_cells(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                  const penstock_snapshot_positions* positions, uint64_t count,
                                  penstock_snapshot_cell_sums* sums, penstock_error* error);
int penstock_snapshot_add_counted_cells(penstock_snapshot* snapshot, penstock_error* error);
/* In place of add_cells and count_cells where particles lie in any order, in memory as the fields do. The snapshot
 * finds the order of cells, and penstock_snapshot_write puts the rows of each dataset of PartTypeN that has a row a
 * particle into that order: the fields stay as they are. A process has fewer than 2^32 particles of a type; 4 bytes of
 * each are in use until the snapshot is written, and 256 MiB more while it is. Datasets of such a type have no values
 * given before. */
int penstock_snapshot_sort_by_cells(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                    const penstock_snapshot_positions* positions, uint64_t count,
                                    penstock_error* error);
int penstock_snapshot_sort_and_count(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                     const penstock_snapshot_positions* positions, uint64_t count,
                                     penstock_snapshot_cell_sums* sums, penstock_error* error);
/* The particles in the order of their cells: order gets, for each, the number that it has now, from 0 on. Those of one
 * cell keep their order. Positions outside of the box are counted to the nearest cell; NaN and infinite ones
 * are refused. */
int penstock_snapshot_cell_order(const penstock_snapshot_cells* cells, const penstock_snapshot_positions* positions,
                                 uint64_t* order, penstock_error* error);
/* path: a group or a dataset that was added; "/" is the file. The attribute replaces one of its name. */
int penstock_snapshot_set_attribute(penstock_snapshot* snapshot, const char* path,
                                    const penstock_snapshot_attribute* attribute, penstock_error* error);
/* All groups, links and attributes that the code writes: of the header, of units and of each dataset PartTypeN/NAME
 * that was added before. Attributes that are set later replace them; those of quantities that are not known are the
 * caller's. */
int penstock_snapshot_use_preset(penstock_snapshot* snapshot, const penstock_snapshot_preset* preset,
                                 penstock_error* error);
/* Fields were made on this stream, a cudaStream_t: its work comes first. Null, as at first: the default one. */
int penstock_snapshot_use_stream(penstock_snapshot* snapshot, void* stream, penstock_error* error);
/* Each dataset once, in any order; count fields. facts may be null. After an error the file is not there, and a second
 * call may follow. After a success every other call is refused. */
int penstock_snapshot_write(penstock_snapshot* snapshot, const penstock_snapshot_field* fields, uint64_t count,
                            penstock_snapshot_facts* facts, penstock_error* error);
void penstock_snapshot_free(penstock_snapshot* snapshot);

/* Several processes define the same, with their own shapes, and each calls begin, write and commit. All wait for each
 * other between these; where one fails all let the snapshot go. Process 0 begins first. It commits last where each
 * process has a file. penstock_mpi.h does all this. */

/* The same in all processes that define the same. */
int penstock_snapshot_digest(const penstock_snapshot* snapshot, uint64_t* digest, penstock_error* error);
/* place: that of process 0, which itself gives null, as all do where each process has a file. */
int penstock_snapshot_begin(penstock_snapshot* snapshot, const char* place, penstock_error* error);
/* Where process 0 has begun: what the others open. Empty where each process has a file. */
int penstock_snapshot_place(const penstock_snapshot* snapshot, penstock_text* place, penstock_error* error);
/* The files get their names: from now on readers see the snapshot. */
int penstock_snapshot_commit(penstock_snapshot* snapshot, penstock_error* error);
/* Nothing is left of a file that was begun and has no name; begin may follow. Free does it too. */
void penstock_snapshot_abandon(penstock_snapshot* snapshot);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_SNAPSHOT_H */
