/* Histories through the C ABI: fields are written step by step and read back; mistakes are refused in words.
 *
 * Plain C11 with penstock.h only. See abi_check.h, which also explains --control.
 */
#define _POSIX_C_SOURCE 200809L
#include "c/abi_check.h"
#include "penstock_history.h"

enum { ROWS = 3, COLUMNS = 4, STEPS = 3 };

static const char* const kNames[] = {"y", "x"};
static const uint64_t kShape[] = {ROWS, COLUMNS};

static penstock_history* made_history(const penstock_context* context, const char* leaf) {
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_history* history = NULL;
    options.time_units = "days since 2000-01-01";
    options.calendar = "noleap";
    if (!CHECK(penstock_history_open(context, named(leaf), &options, &history, &error) == PENSTOCK_OK)) {
        fprintf(stderr, "  %s\n", error.message);
    }
    return history;
}

static penstock_history_variable temperature(void) {
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    variable.name = "T";
    variable.dtype = "float32";
    variable.source_dtype = "float64";
    variable.dimensions = kNames;
    variable.shape = kShape;
    variable.rank = 2;
    return variable;
}

static void put_step(const penstock_context* context, penstock_history* history, const penstock_buffer* field,
                     int step) {
    double values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = 100 * step + i;
    CHECK(penstock_copy_to_device(context, penstock_buffer_pointer(field), values, sizeof(values), NULL) == 0);
    CHECK(penstock_history_put(history, "T", penstock_buffer_pointer(field), NULL) == PENSTOCK_OK);
}

static penstock_datafile* file_of_steps(const penstock_context* context, const char* leaf) {
    penstock_datafile* file = NULL;
    CHECK(penstock_datafile_open(context, named(leaf), NULL, &file, NULL) == PENSTOCK_OK);
    return file;
}

static void read_back(penstock_datafile* file, const char* name, void* into, uint64_t bytes) {
    penstock_request request = PENSTOCK_REQUEST_INIT;
    penstock_dataset* dataset = NULL;
    request.memory.data = into;
    request.memory.bytes = bytes;
    request.memory.kind = PENSTOCK_SYSTEM;
    CHECK(penstock_dataset_open(file, name, &dataset, NULL) == PENSTOCK_OK);
    CHECK(penstock_dataset_read(dataset, NULL, &request, NULL, NULL) == PENSTOCK_OK);
    penstock_dataset_close(dataset);
}

static void steps_are_read_back(void) {
    penstock_context* context = made_context(0);
    penstock_history* history = made_history(context, "history.nc");
    penstock_buffer* field = device_buffer(context, ROWS * COLUMNS * sizeof(double));
    penstock_datafile* file = NULL;
    penstock_history_variable variable = temperature();
    penstock_history_constant constant = PENSTOCK_HISTORY_CONSTANT_INIT;
    penstock_attribute attribute = PENSTOCK_ATTRIBUTE_INIT;
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    const double x[COLUMNS] = {0.5, 1.5, 2.5, 3.5}, range[] = {0, 400};
    float found[STEPS * ROWS * COLUMNS];
    double times[STEPS];
    char room[4096];
    penstock_text evidence = {room, sizeof(room), 0};
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_OK);
    constant.name = "x";
    constant.dimensions = &kNames[1];
    constant.shape = &kShape[1];
    constant.rank = 1;
    constant.values = x;
    constant.bytes = sizeof(x);
    CHECK(penstock_history_define_constant(history, &constant, NULL) == PENSTOCK_OK);
    attribute.name = "units";
    attribute.text = "K";
    CHECK(penstock_history_set_attribute(history, "T", &attribute, NULL) == PENSTOCK_OK);
    attribute.name = "valid_range";
    attribute.text = NULL;
    attribute.dtype = "float32";
    attribute.numbers = range;
    attribute.count = 2;
    CHECK(penstock_history_set_attribute(history, "T", &attribute, NULL) == PENSTOCK_OK);
    for (int step = 0; step < STEPS; ++step) {
        put_step(context, history, field, step);
        CHECK(penstock_history_end_step(history, 0.5 * step, NULL) == PENSTOCK_OK);
    }
    CHECK(penstock_history_use_stream(history, NULL, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_wait(history, NULL) == PENSTOCK_OK);
    facts.evidence = &evidence;
    CHECK(penstock_history_describe(history, &facts, NULL) == PENSTOCK_OK);
    CHECK(facts.steps_ended == STEPS && facts.steps_published == STEPS);
    CHECK(facts.step_bytes == 8 + sizeof(found) / STEPS && strstr(room, "\"path\"") != NULL);
    CHECK(penstock_history_close(history, NULL) == PENSTOCK_OK);
    file = file_of_steps(context, "history.nc");
    read_back(file, "T", found, sizeof(found));
    read_back(file, "time", times, sizeof(times));
    penstock_datafile_close(file);
    for (int i = 0; i < STEPS * ROWS * COLUMNS; ++i) {
        CHECK(found[i] == (float)(100 * (i / (ROWS * COLUMNS)) + i % (ROWS * COLUMNS)));
    }
    CHECK(times[0] == 0 && times[1] == 0.5 && times[2] == 1);
    penstock_buffer_free(field);
    penstock_context_destroy(context);
}

static void mistakes_are_refused(void) {
    penstock_context* context = made_context(0);
    penstock_history* history = made_history(context, "wrong.nc");
    penstock_history* none = NULL;
    penstock_history_variable variable = temperature();
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_attribute attribute = PENSTOCK_ATTRIBUTE_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    CHECK(penstock_history_open(NULL, named("wrong.nc"), NULL, &none, NULL) == PENSTOCK_INVALID_ARGUMENT && !none);
    CHECK(penstock_history_open(context, NULL, NULL, &none, NULL) == PENSTOCK_INVALID_ARGUMENT && !none);
    options.format = "grib";
    CHECK(penstock_history_open(context, named("wrong.nc"), &options, &none, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "cdf5") != NULL);
    options.format = NULL;
    options.memory = 7;
    CHECK(penstock_history_open(context, named("wrong.nc"), &options, &none, NULL) == PENSTOCK_INVALID_ARGUMENT);
    options.memory = PENSTOCK_DEVICE;
    options.compression = "rar";
    CHECK(penstock_history_open(context, named("wrong.nc"), &options, &none, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "gzip") != NULL);
    options.struct_size = 8;
    CHECK(penstock_history_open(context, named("wrong.nc"), &options, &none, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_history_define(history, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    variable.name = NULL;
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_INVALID_ARGUMENT);
    variable = temperature();
    variable.rank = 17;
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_INVALID_ARGUMENT);
    variable.rank = (uint32_t)-1;
    CHECK(penstock_history_define(history, &variable, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "have different lengths") != NULL);
    variable = temperature();
    variable.statistic = 9;
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_INVALID_ARGUMENT);
    variable = temperature();
    variable.shape = NULL;
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_INVALID_ARGUMENT);
    attribute.name = "units";
    CHECK(penstock_history_set_attribute(history, NULL, &attribute, NULL) == PENSTOCK_INVALID_ARGUMENT);
    const double half = 1.5;
    attribute.dtype = "int32";
    attribute.numbers = &half;
    attribute.count = 1;
    CHECK(penstock_history_set_attribute(history, NULL, &attribute, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "is 1.500000 of dtype int32; give whole numbers") != NULL);
    attribute.dtype = "float64";
    CHECK(penstock_history_set_attribute(history, NULL, &attribute, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_put(history, "T", &options, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_history_end_step(history, 0, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_history_put((penstock_history*)context, "T", &options, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_history_close(NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_history_close(history, NULL) == PENSTOCK_OK); /* nothing was put: there is no file */
    CHECK(access(named("wrong.nc"), F_OK) != 0);
    penstock_history_abandon(NULL);
    penstock_context_destroy(context);
}

static void compressed_steps_are_written(void) {
    penstock_context* context = made_context(0);
    penstock_history* history = NULL;
    penstock_buffer* field = device_buffer(context, ROWS * COLUMNS * sizeof(double));
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history_variable variable = temperature();
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    const uint64_t chunk_shape[] = {2, COLUMNS};
    options.format = "netcdf4";
    options.compression = "deflate";
    options.compression_level = 1;
    options.encode_threads = 1;
    CHECK(penstock_history_open(context, named("history.nc"), &options, &history, NULL) == PENSTOCK_OK);
    variable.chunk_shape = chunk_shape;
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_OK);
    put_step(context, history, field, 1);
    CHECK(penstock_history_end_step(history, 0, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_wait(history, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_describe(history, &facts, NULL) == PENSTOCK_OK);
    CHECK(facts.stored_bytes > 8 && facts.encode_seconds > 0);
    CHECK(penstock_history_close(history, NULL) == PENSTOCK_OK);
    penstock_buffer_free(field);
    penstock_context_destroy(context);
}

/* All that is in the store, and nothing else. */
static void remove_store(void) {
    static const char* const files[] = {"history.zarr/T/c.0.0.0", "history.zarr/T/zarr.json", "history.zarr/time/c.0",
                                        "history.zarr/time/zarr.json", "history.zarr/zarr.json"};
    static const char* const folders[] = {"history.zarr/T", "history.zarr/time", "history.zarr"};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); ++i) CHECK(unlink(named(files[i])) == 0);
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); ++i) CHECK(rmdir(named(folders[i])) == 0);
}

static void a_store_is_written(void) {
    penstock_context* context = made_context(0);
    penstock_history* history = NULL;
    penstock_buffer* field = device_buffer(context, ROWS * COLUMNS * sizeof(double));
    penstock_datafile* file = NULL;
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history_variable variable = temperature();
    float found[ROWS * COLUMNS];
    options.format = "zarr";
    CHECK(penstock_history_open(context, named("history.zarr"), &options, &history, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_OK);
    put_step(context, history, field, 1);
    CHECK(penstock_history_end_step(history, 0, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_close(history, NULL) == PENSTOCK_OK);
    file = file_of_steps(context, "history.zarr");
    read_back(file, "T", found, sizeof(found));
    penstock_datafile_close(file);
    for (int i = 0; i < ROWS * COLUMNS; ++i) CHECK(found[i] == (float)(100 + i));
    remove_store();
    penstock_buffer_free(field);
    penstock_context_destroy(context);
}

static void raw_files_are_written(void) {
    static const char* const files[] = {"history.raw/T.raw", "history.raw/time.raw", "history.raw/penstock.json"};
    penstock_context* context = made_context(0);
    penstock_history* history = NULL;
    penstock_buffer* field = device_buffer(context, ROWS * COLUMNS * sizeof(double));
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history_variable variable = temperature();
    float found[STEPS * ROWS * COLUMNS + 1];
    FILE* file = NULL;
    options.format = "raw";
    CHECK(penstock_history_open(context, named("history.raw"), &options, &history, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_OK);
    for (int step = 0; step < STEPS; ++step) {
        put_step(context, history, field, step);
        CHECK(penstock_history_end_step(history, step, NULL) == PENSTOCK_OK);
    }
    CHECK(penstock_history_close(history, NULL) == PENSTOCK_OK);
    file = fopen(named("history.raw/T.raw"), "rb");
    CHECK(file != NULL && fread(found, sizeof(float), STEPS * ROWS * COLUMNS + 1, file) == STEPS * ROWS * COLUMNS);
    if (file != NULL) fclose(file);
    for (int i = 0; i < STEPS * ROWS * COLUMNS; ++i) {
        CHECK(found[i] == (float)(100 * (i / (ROWS * COLUMNS)) + i % (ROWS * COLUMNS)));
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); ++i) CHECK(unlink(named(files[i])) == 0);
    CHECK(rmdir(named("history.raw")) == 0);
    penstock_buffer_free(field);
    penstock_context_destroy(context);
}

/* The structs as they were before compression: what lies behind them is neither read nor written. */
static void structs_of_older_programs_are_taken(void) {
    penstock_context* context = made_context(0);
    penstock_history* history = NULL;
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history_variable variable = temperature();
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    options.struct_size = 72;
    options.compression = "none of these";
    options.may_have_gaps = 1;
    CHECK(penstock_history_open(context, named("history.nc"), &options, &history, NULL) == PENSTOCK_OK);
    variable.struct_size = 112;
    variable.compression = "none of these";
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_OK);
    facts.struct_size = 80;
    facts.stored_bytes = 7;
    facts.encode_seconds = 7;
    CHECK(penstock_history_describe(history, &facts, NULL) == PENSTOCK_OK);
    CHECK(facts.stored_bytes == 7 && facts.encode_seconds == 7);
    facts.struct_size = 72;
    CHECK(penstock_history_describe(history, &facts, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_history_close(history, NULL) == PENSTOCK_OK);
    penstock_context_destroy(context);
}

static void tests(void) {
    steps_are_read_back();
    compressed_steps_are_written();
    a_store_is_written();
    raw_files_are_written();
    structs_of_older_programs_are_taken();
    mistakes_are_refused();
}

int main(int count, char** arguments) {
    static const char* const leaves[] = {"history.nc", NULL};
    return run_in_folder(count, arguments, &tests, leaves);
}
