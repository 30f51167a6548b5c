/* What a model does wrong with snapshots and restarts, in C: each is refused in one line that says which file, which
 * dataset or field, and what to do; and the next right call works.
 *
 * See abi_check.h, which also explains --control.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <sys/resource.h>

#include "c/abi_check.h"
#include "penstock_restart.h"
#include "penstock_snapshot.h"

enum { COUNT = 50000 };

static const uint64_t kShape[] = {COUNT};
static double values[COUNT];
static penstock_error error = PENSTOCK_ERROR_INIT;

#define REFUSED(call, words) check_refused(call, PENSTOCK_INVALID_ARGUMENT, &error, words)

static penstock_snapshot* of_memory(const penstock_context* context, int32_t memory) {
    penstock_snapshot_options options = PENSTOCK_SNAPSHOT_OPTIONS_INIT;
    penstock_snapshot* snapshot = NULL;
    options.memory = memory;
    CHECK(penstock_snapshot_open(context, named("s.hdf5"), &options, &snapshot, NULL) == PENSTOCK_OK);
    return snapshot;
}

static int add(penstock_snapshot* snapshot, const char* path, const char* dtype) {
    penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
    dataset.path = path;
    dataset.dtype = dtype;
    dataset.shape = kShape;
    dataset.rank = 1;
    return penstock_snapshot_add_dataset(snapshot, &dataset, &error);
}

static void fields_that_make_no_sense(void) {
    penstock_context* context = made_context(0);
    penstock_snapshot* snapshot = of_memory(context, PENSTOCK_SYSTEM);
    const penstock_snapshot_field right = {"x", values, sizeof(values)}, none = {"x", NULL, sizeof(values)};
    const penstock_snapshot_field short_one = {"x", values, 8}, unknown = {"y", values, sizeof(values)};
    const penstock_snapshot_field twice[] = {right, right}, unnamed = {NULL, values, sizeof(values)};
    CHECK(add(snapshot, "x", "float64") == PENSTOCK_OK);
    REFUSED(add(snapshot, "x", "float64"), "s.hdf5: dataset 'x' is added twice");
    REFUSED(add(snapshot, "z", "float65"), "float65");
    REFUSED(penstock_snapshot_write(snapshot, NULL, 0, NULL, &error), "dataset 'x' is not given");
    REFUSED(penstock_snapshot_write(snapshot, &none, 1, NULL, &error), "dataset 'x' is a null pointer; give its");
    REFUSED(penstock_snapshot_write(snapshot, &short_one, 1, NULL, &error), "is given 8 bytes and takes 400000");
    REFUSED(penstock_snapshot_write(snapshot, &unknown, 1, NULL, &error), "dataset 'y' was not added; add it first");
    REFUSED(penstock_snapshot_write(snapshot, twice, 2, NULL, &error), "dataset 'x' is given twice");
    REFUSED(penstock_snapshot_write(snapshot, &unnamed, 1, NULL, &error), "the dataset of a field is null");
    REFUSED(penstock_snapshot_commit(snapshot, &error), "the file is not begun");
    CHECK(access(named("s.hdf5"), F_OK) != 0);
    CHECK(penstock_snapshot_write(snapshot, &right, 1, NULL, NULL) == PENSTOCK_OK);
    REFUSED(add(snapshot, "late", "float64"), "the snapshot is written already; open another one");
    REFUSED(penstock_snapshot_write(snapshot, &right, 1, NULL, &error), "is written already; open another one");
    penstock_snapshot_free(snapshot);
    snapshot = of_memory(context, PENSTOCK_DEVICE);
    CHECK(add(snapshot, "x", "float64") == PENSTOCK_OK);
    REFUSED(penstock_snapshot_write(snapshot, &right, 1, NULL, &error), "dataset 'x': ");
    REFUSED(penstock_snapshot_write(snapshot, &right, 1, NULL, &error), "this snapshot takes memory of ");
    penstock_snapshot_free(snapshot);
    penstock_context_destroy(context);
}

static penstock_restart* made_restart(const penstock_context* context, int32_t memory) {
    penstock_restart_options options = PENSTOCK_RESTART_OPTIONS_INIT;
    penstock_restart* restart = NULL;
    options.memory = memory;
    CHECK(penstock_restart_open(context, named("r"), &options, &restart, NULL) == PENSTOCK_OK);
    return restart;
}

static uint64_t start; /* of the box of a field */

static int set(penstock_restart* restart, const char* name, const char* dtype, void* data) {
    penstock_restart_field field = PENSTOCK_RESTART_FIELD_INIT;
    field.name = name;
    field.dtype = dtype;
    field.data = data;
    field.shape = kShape;
    field.start = &start;
    field.rank = 1;
    return penstock_restart_set_field(restart, &field, &error);
}

static void fields_of_a_restart_that_make_no_sense(void) {
    penstock_context* context = made_context(0);
    penstock_restart* restart = made_restart(context, PENSTOCK_SYSTEM);
    uint64_t shape[PENSTOCK_MOST_DIMENSIONS], rank = 0, number = 0;
    char room[64] = {0};
    penstock_text text = {room, sizeof(room), 0};
    uint32_t* sums = NULL;
    REFUSED(penstock_restart_write(restart, NULL, &error), "no field and no attribute is set");
    REFUSED(set(restart, "", "float64", values), "has no name that can be used");
    REFUSED(set(restart, "x", "float65", values), "field 'x' has the type 'float65', which is none");
    start = COUNT + 1;
    REFUSED(set(restart, "x", "float64", values), "the box of field 'x', from ");
    start = 0;
    CHECK(set(restart, "x", "float64", NULL) == PENSTOCK_OK);
    REFUSED(penstock_restart_write(restart, NULL, &error), "the memory of field 'x' is a null pointer; give its");
    start = 8;
    CHECK(set(restart, "x", "float64", values) == PENSTOCK_OK);
    REFUSED(penstock_restart_write(restart, NULL, &error), "do not have each element of each field once");
    start = 0;
    REFUSED(penstock_restart_move(restart, &sums, &rank, &number, &error), "no write was begun; call begin first");
    REFUSED(penstock_restart_commit(restart, NULL, 0, 0, NULL, &error), "no write was begun; call begin first");
    REFUSED(penstock_restart_stored(restart, "x", shape, &rank, &text, &error), "no generation was found; call find");
    REFUSED(penstock_restart_pass_over(restart, "wrong", &error), "no generation was found; call find first");
    REFUSED(penstock_restart_read(restart, NULL, &error), "there is no generation: neither ");
    CHECK(access(named("r.0"), F_OK) != 0 && access(named("r.1"), F_OK) != 0);
    CHECK(set(restart, "x", "float64", values) == PENSTOCK_OK);
    CHECK(penstock_restart_begin(restart, NULL, &text, NULL) == PENSTOCK_OK);
    REFUSED(penstock_restart_begin(restart, NULL, &text, &error), "a write was begun and has not ended; commit or");
    CHECK(penstock_restart_abandon(restart, NULL) == PENSTOCK_OK);
    CHECK(penstock_restart_write(restart, NULL, NULL) == PENSTOCK_OK);
    penstock_restart_free(restart);
    penstock_context_destroy(context);
}

/* What is in the file is not what the model sets: the file names which field, and what it is there. */
static void fields_that_the_file_does_not_have(void) {
    penstock_context* context = made_context(0);
    penstock_restart* restart = made_restart(context, PENSTOCK_SYSTEM);
    uint64_t shape[PENSTOCK_MOST_DIMENSIONS], rank = 0;
    int32_t found = 0;
    CHECK(penstock_restart_find(restart, &found, NULL) == PENSTOCK_OK && found == 1);
    REFUSED(penstock_restart_stored(restart, "y", shape, &rank, NULL, &error), "'y'");
    REFUSED(penstock_restart_get_numbers(restart, "step", "int64", &rank, 8, &error), "'step'");
    CHECK(set(restart, "y", "float64", values) == PENSTOCK_OK);
    REFUSED(penstock_restart_read(restart, NULL, &error), "there is no field 'y' in generation 1; set the fields that");
    CHECK(penstock_restart_clear(restart, NULL) == PENSTOCK_OK);
    CHECK(set(restart, "x", "float32", values) == PENSTOCK_OK);
    REFUSED(penstock_restart_read(restart, NULL, &error),
            "field 'x' is float64 (50000) in generation 1, and was set as");
    penstock_restart_free(restart);
    restart = made_restart(context, PENSTOCK_DEVICE);
    CHECK(set(restart, "x", "float64", values) == PENSTOCK_OK);
    REFUSED(penstock_restart_read(restart, NULL, &error), "the memory of field 'x': ");
    REFUSED(penstock_restart_write(restart, NULL, &error), "this restart takes memory of ");
    penstock_restart_free(restart);
    penstock_context_destroy(context);
}

/* The limit of the size of files stands for a disk that is full, or a quota. What was there before stays. */
static void a_disk_that_is_full(void) {
    struct rlimit old, limit;
    penstock_context* context = made_context(0);
    penstock_snapshot* snapshot = of_memory(context, PENSTOCK_SYSTEM);
    penstock_restart* restart = made_restart(context, PENSTOCK_SYSTEM);
    const penstock_snapshot_field right = {"x", values, sizeof(values)};
    uint64_t generation = 0;
    int32_t found = 0;
    CHECK(add(snapshot, "x", "float64") == PENSTOCK_OK);
    CHECK(set(restart, "x", "float64", values) == PENSTOCK_OK);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = sizeof(values) / 2;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    check_refused(penstock_snapshot_write(snapshot, &right, 1, NULL, &error), PENSTOCK_NO_SPACE, &error, "s.hdf5");
    check_refused(penstock_restart_write(restart, NULL, &error), PENSTOCK_NO_SPACE, &error, "generation 2: ");
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK(penstock_restart_find(restart, &found, NULL) == PENSTOCK_OK && found == 1);
    CHECK(penstock_restart_generation(restart, &generation, NULL) == PENSTOCK_OK && generation == 1);
    CHECK(penstock_snapshot_write(snapshot, &right, 1, NULL, NULL) == PENSTOCK_OK);
    CHECK(penstock_restart_write(restart, NULL, NULL) == PENSTOCK_OK);
    penstock_restart_free(restart);
    penstock_snapshot_free(snapshot);
    penstock_context_destroy(context);
}

static void tests(void) {
    fields_that_make_no_sense();
    fields_of_a_restart_that_make_no_sense();
    fields_that_the_file_does_not_have();
    a_disk_that_is_full();
}

int main(int count, char** arguments) {
    static const char* const leaves[] = {"s.hdf5", "r.0", "r.1", NULL};
    return run_in_folder(count, arguments, &tests, leaves);
}
