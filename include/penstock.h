/* Penstock from C: files to and from GPU memory, with proof of the way the bytes took. The stable ABI.
 *
 * Everything Penstock promises to other languages is here and in penstock_history.h, penstock_snapshot.h and
 * penstock_restart.h, and nowhere else; the C++ headers may change, these declarations only grow. Plain C11. The
 * conventions below hold for every function, so the declarations do not repeat them.
 *
 *  1. Handles (penstock_context, penstock_file, penstock_buffer, penstock_transfer, penstock_datafile,
 *     penstock_dataset, penstock_history, penstock_snapshot and penstock_restart) are opaque pointers. A null handle
 *     and one of another kind are refused with PENSTOCK_INVALID_ARGUMENT. Using a freed handle is undefined, as with
 *     free().
 *  2. Functions that can fail return an int: PENSTOCK_OK or one of the codes below. Codes are never renumbered; treat
 *     one you do not know as PENSTOCK_INTERNAL. Nothing is printed, nothing exits, no signal handler is installed.
 *  3. The last parameter of such a function is a penstock_error*, filled on failure and cleared on success. It may be
 *     null. There is no error state in the library or the thread.
 *  4. Sizes, offsets and counts are in bytes, as uint64_t, unless a name says another unit. Booleans are int32_t, zero
 *     or not. Times are whole milliseconds unless a name says another unit.
 *  5. A struct that may grow begins with struct_size, which the caller sets to sizeof(the struct), or uses its _INIT.
 *     All other fields zero is the default behaviour. An older struct_size means the fields it lacks are zero; a newer
 *     one is accepted only if the fields this library does not know are zero. A call with a struct it refuses has done
 *     nothing, and given nothing back.
 *  6. Text goes in as null-terminated UTF-8 (file names: any bytes) and is copied before the call returns. Text comes
 *     out through a penstock_text: `needed` is the room it takes, terminator included; what does not fit is cut at
 *     a character boundary and still terminated. needed > capacity says that it was cut. Returned `const char*` are
 *     static.
 *  7. What create, open, allocate and start return is the caller's (null where they fail), to be given back once by the
 *     function named beside it. Those functions take null and do nothing. Order does not matter: files, buffers and
 *     transfers keep what they need of their context alive. A transfer keeps memory of a penstock_buffer alive; other
 *     memory is the caller's to keep until the transfer is done.
 *  8. Any function may be called from any thread, also on the same handle at once, except that no other thread may use
 *     a handle while it is given back. Callbacks come from worker threads and must not call back into Penstock.
 *  9. A child of fork() must not use handles made by its parent.
 * 10. Not supported here: plans as data, page cache control, registering mappings. The C++ headers have them.
 */
#ifndef PENSTOCK_H
#define PENSTOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a declaration is added. A program built against version n runs with any library of version >= n. */
#define PENSTOCK_ABI_VERSION 7

typedef struct penstock_context penstock_context;
typedef struct penstock_file penstock_file;
typedef struct penstock_buffer penstock_buffer;
typedef struct penstock_transfer penstock_transfer;

enum {
    PENSTOCK_OK = 0,
    PENSTOCK_INVALID_ARGUMENT = 1,
    PENSTOCK_NOT_FOUND = 2,
    PENSTOCK_PERMISSION_DENIED = 3,
    PENSTOCK_NOT_A_REGULAR_FILE = 4,
    PENSTOCK_END_OF_FILE = 5,
    PENSTOCK_NO_SPACE = 6,
    PENSTOCK_OUT_OF_MEMORY = 7,
    PENSTOCK_UNSUPPORTED = 8,
    PENSTOCK_TIMED_OUT = 9,
    PENSTOCK_CANCELLED = 10,
    PENSTOCK_IO_ERROR = 11,
    PENSTOCK_DEVICE_ERROR = 12,
    PENSTOCK_READ_ONLY = 13,
    PENSTOCK_FALLBACK_REFUSED = 14,
    PENSTOCK_INTERNAL = 15
};

/* Values of every field or parameter called `kind`. */
enum { PENSTOCK_DEVICE = 0, PENSTOCK_PINNED = 1, PENSTOCK_MANAGED = 2, PENSTOCK_SYSTEM = 3 };
/* Values of penstock_buffer_options.first_touch. */
enum { PENSTOCK_TOUCH_NONE = 0, PENSTOCK_TOUCH_CPU = 1, PENSTOCK_TOUCH_GPU = 2 };
/* Values of penstock_open_options.mode. CREATE: the file appears under its name, whole, at close. */
enum { PENSTOCK_READ = 0, PENSTOCK_READ_WRITE = 1, PENSTOCK_CREATE = 2 };
/* Values of penstock_ranges.direction. To memory: read. */
enum { PENSTOCK_TO_MEMORY = 0, PENSTOCK_TO_FILE = 1 };

/* Why a call failed. Texts are cut where they do not fit and always terminated. */
typedef struct penstock_error {
    uint64_t struct_size;
    int32_t code;          /* as returned */
    int32_t system_code;   /* errno, CUDA or cuFile code; 0 when there is none */
    uint64_t offset_bytes; /* the range concerned; length 0: none */
    uint64_t length_bytes;
    char operation[64];
    char file[1024];
    char cause[512];
    char advice[512];
    char message[2048];    /* all of it as one line */
} penstock_error;
#define PENSTOCK_ERROR_INIT {sizeof(penstock_error), 0, 0, 0, 0, {0}, {0}, {0}, {0}, {0}}

/* Where text goes. Never grows. data may be null when capacity is 0, to ask what is needed. */
typedef struct penstock_text {
    char* data;
    uint64_t capacity;
    uint64_t needed; /* out */
} penstock_text;

/* Memory as pointer, length and kind. Never grows. */
typedef struct penstock_memory {
    void* data;
    uint64_t bytes;
    int32_t kind;
    int32_t reserved; /* zero */
} penstock_memory;

/* ---- Library ---- */
uint32_t penstock_abi_version(void);
const char* penstock_version(void);            /* "0.1.0" */
const char* penstock_code_name(int code);      /* "no_space"; "unknown" for a number that is no code */
int penstock_path_names(penstock_text* names, penstock_error* error); /* "auto, buffered, direct, ..." */

/* ---- Context: a device, its workers and staging memory ---- */
typedef struct penstock_context_options {
    uint64_t struct_size;
    const char* device;    /* null: "auto"; "host", "cuda:0", ... */
    const char* path;      /* null: "auto"; for every transfer that does not say */
    uint64_t budget_bytes; /* staging memory, never exceeded; 0: 256 MiB */
    uint32_t workers;      /* 0: the policy decides */
    int32_t strict;        /* any fallback is an error */
    double emulated_bandwidth_bytes_per_s; /* of the host device; 0: as fast as memory */
    uint64_t emulated_latency_ns;          /* of the host device, for each copy */
    const char* profile;   /* null: none; a machine profile, or a directory of them, for "auto" to choose by */
    int32_t adaptive;      /* transfers correct the profile's costs, in this context only */
    int32_t reserved;      /* zero */
} penstock_context_options;
#define PENSTOCK_CONTEXT_OPTIONS_INIT {sizeof(penstock_context_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* options may be null. Give back with penstock_context_destroy. */
int penstock_context_create(const penstock_context_options* options, penstock_context** context,
                            penstock_error* error);
void penstock_context_destroy(penstock_context* context);
int penstock_context_device(const penstock_context* context, penstock_text* name, penstock_error* error);
/* The device for a process that is so many-eth, from 0, on its machine: "cuda:N" in turn, or "host" without a GPU. */
int penstock_local_device(uint32_t local_process, penstock_text* name, penstock_error* error);
/* Staging memory held now and at most so far. Either pointer may be null. */
int penstock_context_pinned(const penstock_context* context, uint64_t* now_bytes, uint64_t* peak_bytes,
                            penstock_error* error);

/* ---- Memory ---- */
typedef struct penstock_buffer_options {
    uint64_t struct_size;
    uint64_t bytes; /* > 0 */
    int32_t kind;
    int32_t first_touch;
} penstock_buffer_options;
#define PENSTOCK_BUFFER_OPTIONS_INIT {sizeof(penstock_buffer_options), 0, 0, 0}

/* Give back with penstock_buffer_free. */
int penstock_buffer_allocate(const penstock_context* context, const penstock_buffer_options* options,
                             penstock_buffer** buffer, penstock_error* error);
void penstock_buffer_free(penstock_buffer* buffer);
void* penstock_buffer_pointer(const penstock_buffer* buffer); /* null for a null handle */
int penstock_buffer_memory(const penstock_buffer* buffer, penstock_memory* memory, penstock_error* error);
/* Checks that the caller's memory->data, memory->bytes is memory of memory->kind for this context, and sets
 * memory->kind to what it is. Device memory that is not this device's is refused. */
int penstock_wrap(const penstock_context* context, penstock_memory* memory, penstock_error* error);

/* What a pointer leads to. base and bytes are of its allocation: until that is freed the answer is the same for all of
 * it, so that a caller can keep it. */
typedef struct penstock_pointer {
    uint64_t struct_size;
    void* base;           /* null: not known */
    uint64_t bytes;       /* 0: not known */
    int32_t kind;         /* PENSTOCK_SYSTEM: no device knows it, so it is memory of the CPU, or no memory at all */
    int32_t device_index; /* N of "cuda:N"; -1: of no device */
} penstock_pointer;
#define PENSTOCK_POINTER_INIT {sizeof(penstock_pointer), 0, 0, 0, 0}

/* context may be null: then the driver is asked that this process has loaded, if it has, and no library is loaded and
 * nothing made. Takes less than a microsecond, so it can be asked before each system call. */
int penstock_memory_kind(const penstock_context* context, const void* memory, penstock_pointer* found,
                         penstock_error* error);
int penstock_copy_to_host(const penstock_context* context, void* host, const void* device, uint64_t bytes,
                          penstock_error* error);
int penstock_copy_to_device(const penstock_context* context, void* device, const void* host, uint64_t bytes,
                            penstock_error* error);
typedef struct penstock_copy {
    void* destination;
    const void* source;
    uint64_t bytes;
} penstock_copy; /* never grows */
/* Many copies between memory of the device and pinned memory as one piece of its work: a copy of some bytes costs
 * nanoseconds, not a call. direction is PENSTOCK_TO_MEMORY for those to the device, PENSTOCK_TO_FILE for the others. */
int penstock_copy_pieces(const penstock_context* context, int32_t direction, const penstock_copy* copies,
                         uint64_t count, penstock_error* error);
/* Waits until what was given to a stream of this context's device is done: a cudaStream_t, null for the default stream.
 * Copies, reads and writes do not wait for the caller's streams. A caller whose kernel still fills memory that it
 * writes to a file, or still uses memory that it reads into, calls this first, or waits with CUDA. */
int penstock_synchronize_stream(const penstock_context* context, void* stream, penstock_error* error);

/* ---- Files ---- */
typedef struct penstock_open_options {
    uint64_t struct_size;
    uint64_t size_bytes;     /* CREATE: space to reserve, so that a full disk shows at open */
    int32_t mode;
    int32_t durable;         /* CREATE: close makes data and directory entry durable */
    int32_t refuse_existing; /* CREATE: an existing file of that name is an error */
    int32_t reserved;        /* zero */
} penstock_open_options;
#define PENSTOCK_OPEN_OPTIONS_INIT {sizeof(penstock_open_options), 0, 0, 0, 0, 0}

/* options may be null: read. Give back with penstock_file_close or penstock_file_abandon. */
int penstock_file_open(const penstock_context* context, const char* name, const penstock_open_options* options,
                       penstock_file** file, penstock_error* error);
/* Waits for transfers on the file, gives a created file its name, and reports errors of earlier writes. The handle is
 * gone afterwards, also on failure. */
int penstock_file_close(penstock_file* file, penstock_error* error);
/* Frees the handle only: a created file that was not closed never appears. */
void penstock_file_abandon(penstock_file* file);
int penstock_file_size(const penstock_file* file, uint64_t* bytes, penstock_error* error);
/* Sets the size: bytes behind it are gone, new ones are zero. No transfer of the file may be under way. */
int penstock_file_resize(const penstock_file* file, uint64_t bytes, penstock_error* error);
int penstock_file_sync(const penstock_file* file, penstock_error* error);

/* ---- Transfers ---- */
typedef struct penstock_request {
    uint64_t struct_size;
    penstock_memory memory;  /* of penstock_buffer_memory or penstock_wrap, or a part of it */
    uint64_t offset_bytes;   /* in the file */
    const char* path;        /* null: the context's, else the policy's */
    uint64_t chunk_bytes;    /* a multiple of 4096; 0: the policy decides, as for the next two */
    uint32_t workers;
    uint32_t depth;
    int32_t strict;          /* any fallback is an error */
    int32_t durable;         /* writes: on stable storage when done */
    int32_t full_evidence;   /* small transfers sample counters too */
    int32_t reserved;        /* zero */
    int64_t timeout_ms;      /* of the whole transfer; 0: none */
    void (*progress)(void* user, uint64_t done_bytes, uint64_t total_bytes);
    void* user;
} penstock_request;
#define PENSTOCK_REQUEST_INIT {sizeof(penstock_request), {0, 0, 0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

typedef struct penstock_result {
    uint64_t struct_size;
    uint64_t bytes;      /* from the start of the (first) range to the first byte that did not move */
    double seconds;
    int32_t reached_end; /* the file ended before the range did: bytes is how much came */
    uint32_t fallbacks;  /* how many the evidence lists */
    char path[32];       /* the path that moved all bytes, or "mixed" or "none" */
} penstock_result;
#define PENSTOCK_RESULT_INIT {sizeof(penstock_result), 0, 0, 0, 0, {0}}

/* Blocking. result may be null; it is filled on failure too. A read that meets the end of the file succeeds. */
int penstock_read(const penstock_file* file, const penstock_request* request, penstock_result* result,
                  penstock_error* error);
int penstock_write(const penstock_file* file, const penstock_request* request, penstock_result* result,
                   penstock_error* error);

/* Return at once. Give back with penstock_transfer_free, which neither waits nor cancels. */
int penstock_start_read(const penstock_file* file, const penstock_request* request, penstock_transfer** transfer,
                        penstock_error* error);
int penstock_start_write(const penstock_file* file, const penstock_request* request, penstock_transfer** transfer,
                         penstock_error* error);

typedef struct penstock_range {
    const penstock_file* file;
    uint64_t offset_bytes;
    void* data;
    uint64_t bytes;
} penstock_range; /* never grows */

typedef struct penstock_ranges {
    uint64_t struct_size;
    const penstock_range* items;
    uint64_t count;
    int32_t direction;
    int32_t kind; /* of all their memory */
} penstock_ranges;
#define PENSTOCK_RANGES_INIT {sizeof(penstock_ranges), 0, 0, 0, 0}

/* Many ranges over any number of files as one transfer. request says how; its memory and offset_bytes stay zero. */
int penstock_start_ranges(const penstock_context* context, const penstock_ranges* ranges,
                          const penstock_request* request, penstock_transfer** transfer, penstock_error* error);

#define PENSTOCK_FOREVER (-1)
/* PENSTOCK_OK: done, well or not (see penstock_transfer_result). PENSTOCK_TIMED_OUT: it runs on. timeout_ms 0 asks. */
int penstock_transfer_wait(const penstock_transfer* transfer, int64_t timeout_ms, penstock_error* error);
/* Waits, then returns the code the transfer ended with. result may be null; it is filled on failure too. */
int penstock_transfer_result(const penstock_transfer* transfer, penstock_result* result, penstock_error* error);
/* Operations under way finish, the rest does not start; the transfer then ends with PENSTOCK_CANCELLED. */
int penstock_transfer_cancel(const penstock_transfer* transfer, penstock_error* error);
int penstock_transfer_progress(const penstock_transfer* transfer, uint64_t* done_bytes, uint64_t* total_bytes,
                               penstock_error* error);
/* The evidence as one JSON object (waits), and the plan as lines of text (does not). */
int penstock_transfer_evidence(const penstock_transfer* transfer, penstock_text* json, penstock_error* error);
int penstock_transfer_plan(const penstock_transfer* transfer, penstock_text* text, penstock_error* error);
void penstock_transfer_free(penstock_transfer* transfer);

/* ---- Datasets: arrays in files, by name ----
 *
 * Of NPY, classic netCDF (CDF-1, 2 and 5), safetensors, HDF5 and netCDF-4, Zarr (versions 2 and 3), the folder of a
 * history of raw files ("raw-history", which is read and not written), and raw elements. No other library is needed,
 * for HDF5 neither. A dataset that is not read here, such as a virtual one of HDF5 or text of any length, has its name,
 * and opening it is PENSTOCK_UNSUPPORTED with the reason. A file that is damaged is PENSTOCK_IO_ERROR, one that was cut
 * short PENSTOCK_END_OF_FILE, and a name that the file does not have PENSTOCK_NOT_FOUND.
 */
typedef struct penstock_datafile penstock_datafile;
typedef struct penstock_dataset penstock_dataset;

#define PENSTOCK_MOST_DIMENSIONS 16

typedef struct penstock_datafile_options {
    uint64_t struct_size;
    const char* format;    /* null: by the file's first bytes; "npy", "netcdf3", "safetensors", "hdf5", "netcdf4",
                              "zarr", "raw-history", "raw" */
    int32_t writable;      /* elements may be written; metadata stay as they are */
    uint32_t rank;         /* this and the next three: of "raw" alone, the one dataset "data" */
    const char* dtype;     /* as in penstock_dataset_info, e.g. "float32" */
    const uint64_t* shape; /* rank elements */
    uint64_t offset_bytes; /* of the first element */
} penstock_datafile_options;
#define PENSTOCK_DATAFILE_OPTIONS_INIT {sizeof(penstock_datafile_options), 0, 0, 0, 0, 0, 0}

/* Reads the metadata, once. options may be null. Give back with penstock_datafile_close. */
int penstock_datafile_open(const penstock_context* context, const char* name, const penstock_datafile_options* options,
                           penstock_datafile** datafile, penstock_error* error);
void penstock_datafile_close(penstock_datafile* datafile);
/* How many datasets it has, and the name of each, in the order of the file; index begins at 0. */
int penstock_datafile_count(const penstock_datafile* datafile, uint64_t* count, penstock_error* error);
int penstock_datafile_name(const penstock_datafile* datafile, uint64_t index, penstock_text* name,
                           penstock_error* error);

/* name may be null where the file has one dataset. Give back with penstock_dataset_close; it keeps its file open. */
int penstock_dataset_open(const penstock_datafile* datafile, const char* name, penstock_dataset** dataset,
                          penstock_error* error);
void penstock_dataset_close(penstock_dataset* dataset);

/* Dimensions are in C order: the last is the nearest in memory. An NPY array in Fortran order keeps its shape. */
typedef struct penstock_dataset_info {
    uint64_t struct_size;
    char dtype[64];        /* "float32", "int8", "complex128", "bool", "bfloat16", "S5", "void16" (bits), ... */
    char format[32];       /* of the file */
    uint64_t item_bytes;   /* of an element */
    uint64_t rank;         /* dimensions; 0: one element */
    uint64_t bytes;        /* of all elements */
    int32_t is_encoded;    /* chunks are compressed or otherwise changed: they are read, not written */
    int32_t is_swapped;    /* words are stored in the other order of bytes: memory gets, and gives, this machine's */
    uint64_t shape[PENSTOCK_MOST_DIMENSIONS];       /* elements */
    uint64_t chunk_shape[PENSTOCK_MOST_DIMENSIONS]; /* the dataset's, at least 1 each, where it has no chunks */
} penstock_dataset_info;
#define PENSTOCK_DATASET_INFO_INIT {sizeof(penstock_dataset_info), {0}, {0}, 0, 0, 0, 0, 0, {0}, {0}}

int penstock_dataset_describe(const penstock_dataset* dataset, penstock_dataset_info* info, penstock_error* error);

/* A box of elements, and how they lie in memory. Each array has `rank` numbers, which is the dataset's. */
typedef struct penstock_selection {
    uint64_t struct_size;
    uint64_t rank;
    const uint64_t* start;        /* null: 0 */
    const uint64_t* count;        /* null: all from start on, by step */
    const uint64_t* step;         /* null: 1 */
    const int64_t* strides_bytes; /* in memory, from an element of the box to its neighbour; null: C order, no gaps */
} penstock_selection;
#define PENSTOCK_SELECTION_INIT {sizeof(penstock_selection), 0, 0, 0, 0, 0}

typedef struct penstock_dataset_result {
    uint64_t struct_size;
    uint64_t bytes;          /* of elements that came to their places */
    double seconds;
    uint64_t decoded_bytes;  /* of them, decoded on the cores of the host */
    uint64_t filled_bytes;   /* of them, fill values of chunks that are not stored */
    uint32_t fallbacks;      /* how many the evidence lists */
    int32_t reserved;        /* zero */
    char path[32];           /* as in penstock_result */
    penstock_text* evidence; /* in; null, or where the evidence goes as JSON: of all transfers that it took, as one */
} penstock_dataset_result;
#define PENSTOCK_DATASET_RESULT_INIT {sizeof(penstock_dataset_result), 0, 0, 0, 0, 0, 0, {0}, 0}

/* Blocking. selection may be null: all elements. request says where to and how: its memory holds the selection, of any
 * kind; offset_bytes stays zero; progress is called once, at the end. result may be null; it is filled on failure too.
 * A write changes elements that are in the file, and no byte between them; it is not atomic. Elements in memory are in
 * this machine's order of bytes. */
int penstock_dataset_read(const penstock_dataset* dataset, const penstock_selection* selection,
                          const penstock_request* request, penstock_dataset_result* result, penstock_error* error);
int penstock_dataset_write(const penstock_dataset* dataset, const penstock_selection* selection,
                           const penstock_request* request, penstock_dataset_result* result, penstock_error* error);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_H */
