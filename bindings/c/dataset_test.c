/* Datasets through the C ABI: opened, described, read and written by name; mistakes are refused in words.
 *
 * Plain C11 with penstock.h only. See abi_check.h, which also explains --control.
 */
#define _POSIX_C_SOURCE 200809L
#include "abi_check.h"

enum { ROWS = 6, COLUMNS = 5 };

/* An NPY file of float32, [row][column] = 10 * row + column, in the other order of bytes when asked. */
static const char* npy_file(const char* leaf, int is_big) {
    char header[118];
    FILE* file = fopen(named(leaf), "wb");
    memset(header, ' ', sizeof(header));
    const int used = snprintf(header, sizeof(header), "{'descr': '%cf4', 'fortran_order': False, 'shape': (%d, %d), }",
                              is_big ? '>' : '<', ROWS, COLUMNS);
    header[used] = ' ';
    header[sizeof(header) - 1] = '\n';
    CHECK(fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file) == 10);
    CHECK(fwrite(header, 1, sizeof(header), file) == sizeof(header));
    for (int cell = 0; cell < ROWS * COLUMNS; ++cell) {
        const float value = (float)(10 * (cell / COLUMNS) + cell % COLUMNS);
        unsigned char bytes[4], turned[4];
        memcpy(bytes, &value, 4);
        for (int i = 0; i < 4; ++i) turned[i] = bytes[is_big ? 3 - i : i];
        CHECK(fwrite(turned, 1, 4, file) == 4);
    }
    CHECK(fclose(file) == 0);
    return named(leaf);
}

static penstock_dataset* opened_dataset(const penstock_context* context, const char* name, int writable) {
    penstock_datafile_options options = PENSTOCK_DATAFILE_OPTIONS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_datafile* file = NULL;
    penstock_dataset* dataset = NULL;
    options.writable = writable;
    CHECK(penstock_datafile_open(context, name, &options, &file, &error) == PENSTOCK_OK);
    CHECK(penstock_dataset_open(file, "data", &dataset, &error) == PENSTOCK_OK);
    if (error.code) fprintf(stderr, "  %s\n", error.message);
    penstock_datafile_close(file); /* the dataset keeps it */
    return dataset;
}

static penstock_request into(void* data, uint64_t bytes) {
    penstock_request request = PENSTOCK_REQUEST_INIT;
    request.memory.data = data;
    request.memory.bytes = bytes;
    request.memory.kind = PENSTOCK_SYSTEM;
    return request;
}

static void a_file_tells_its_datasets(void) {
    penstock_context* context = made_context(0);
    penstock_datafile* file = NULL;
    char room[16];
    penstock_text name = {room, sizeof(room), 0};
    penstock_dataset* dataset = NULL;
    penstock_dataset_info info = PENSTOCK_DATASET_INFO_INIT;
    uint64_t count = 0;
    CHECK(penstock_datafile_open(context, npy_file("table.npy", 0), NULL, &file, NULL) == PENSTOCK_OK);
    CHECK(penstock_datafile_count(file, &count, NULL) == PENSTOCK_OK && count == 1);
    CHECK(penstock_datafile_name(file, 0, &name, NULL) == PENSTOCK_OK && strcmp(room, "data") == 0 && name.needed == 5);
    CHECK(penstock_datafile_name(file, 1, &name, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_dataset_open(file, NULL, &dataset, NULL) == PENSTOCK_OK);
    CHECK(penstock_dataset_describe(dataset, &info, NULL) == PENSTOCK_OK);
    CHECK(strcmp(info.dtype, "float32") == 0 && strcmp(info.format, "npy") == 0);
    CHECK(info.rank == 2 && info.shape[0] == ROWS && info.shape[1] == COLUMNS && info.item_bytes == 4);
    CHECK(info.bytes == 4 * ROWS * COLUMNS && info.chunk_shape[0] == ROWS && !info.is_encoded && !info.is_swapped);
    penstock_dataset_close(dataset);
    penstock_datafile_close(file);
    penstock_context_destroy(context);
}

static void boxes_are_read_in_the_order_of_bytes_of_this_machine(void) {
    penstock_context* context = made_context(0);
    for (int is_big = 0; is_big < 2; ++is_big) {
        penstock_dataset* dataset = opened_dataset(context, npy_file("table.npy", is_big), 0);
        const uint64_t start[] = {1, 0}, count[] = {3, 2}, step[] = {2, 3};
        float got[6];
        char json[16384];
        penstock_text evidence = {json, sizeof(json), 0};
        penstock_selection selection = PENSTOCK_SELECTION_INIT;
        penstock_dataset_result result = PENSTOCK_DATASET_RESULT_INIT;
        penstock_request request = into(got, sizeof(got));
        selection.rank = 2;
        selection.start = start;
        selection.count = count;
        selection.step = step;
        result.evidence = &evidence;
        CHECK(penstock_dataset_read(dataset, &selection, &request, &result, NULL) == PENSTOCK_OK);
        for (int i = 0; i < 6; ++i) CHECK(got[i] == (float)(10 * (1 + 2 * (i / 2)) + 3 * (i % 2)));
        CHECK(result.bytes == sizeof(got) && result.path[0] != 0 && strstr(json, "\"paths\":") != NULL);
        CHECK(evidence.needed > 2 && evidence.needed <= sizeof(json));
        penstock_dataset_close(dataset);
    }
    penstock_context_destroy(context);
}

static void elements_go_where_strides_say(void) {
    penstock_context* context = made_context(0);
    penstock_dataset* dataset = opened_dataset(context, npy_file("table.npy", 0), 0);
    const int64_t strides[] = {4, 4 * ROWS}; /* columns one behind the other, as Fortran has them */
    float got[ROWS * COLUMNS];
    penstock_selection selection = PENSTOCK_SELECTION_INIT;
    penstock_request request = into(got, sizeof(got));
    selection.rank = 2;
    selection.strides_bytes = strides;
    CHECK(penstock_dataset_read(dataset, &selection, &request, NULL, NULL) == PENSTOCK_OK);
    for (int i = 0; i < ROWS * COLUMNS; ++i) CHECK(got[i] == (float)(10 * (i % ROWS) + i / ROWS));
    penstock_dataset_close(dataset);
    penstock_context_destroy(context);
}

static void whole_datasets_come_into_device_memory(void) {
    penstock_context* context = made_context(0);
    penstock_dataset* dataset = opened_dataset(context, npy_file("table.npy", 1), 0);
    penstock_buffer* buffer = device_buffer(context, 4 * ROWS * COLUMNS);
    penstock_request request = whole(buffer);
    float got[ROWS * COLUMNS];
    CHECK(penstock_dataset_read(dataset, NULL, &request, NULL, NULL) == PENSTOCK_OK);
    CHECK(penstock_copy_to_host(context, got, penstock_buffer_pointer(buffer), sizeof(got), NULL) == PENSTOCK_OK);
    for (int i = 0; i < ROWS * COLUMNS; ++i) CHECK(got[i] == (float)(10 * (i / COLUMNS) + i % COLUMNS));
    penstock_buffer_free(buffer);
    penstock_dataset_close(dataset);
    penstock_context_destroy(context);
}

static void boxes_are_written_in_place(void) {
    penstock_context* context = made_context(0);
    for (int is_big = 0; is_big < 2; ++is_big) {
        penstock_dataset* dataset = opened_dataset(context, npy_file("table.npy", is_big), 1);
        const uint64_t start[] = {2, 1}, count[] = {2, 3};
        float mine[6] = {1, 2, 3, 4, 5, 6}, got[ROWS * COLUMNS];
        penstock_selection selection = PENSTOCK_SELECTION_INIT;
        penstock_request request = into(mine, sizeof(mine)), all = into(got, sizeof(got));
        selection.rank = 2;
        selection.start = start;
        selection.count = count;
        CHECK(penstock_dataset_write(dataset, &selection, &request, NULL, NULL) == PENSTOCK_OK);
        CHECK(mine[0] == 1 && mine[5] == 6);
        CHECK(penstock_dataset_read(dataset, NULL, &all, NULL, NULL) == PENSTOCK_OK);
        for (int i = 0; i < ROWS * COLUMNS; ++i) {
            const int row = i / COLUMNS, column = i % COLUMNS;
            const int is_mine = row >= 2 && row < 4 && column >= 1 && column < 4;
            CHECK(got[i] == (is_mine ? mine[3 * (row - 2) + column - 1] : (float)(10 * row + column)));
        }
        penstock_dataset_close(dataset);
    }
    penstock_context_destroy(context);
}

static void raw_files_are_what_the_caller_says(void) {
    penstock_context* context = made_context(0);
    penstock_datafile_options options = PENSTOCK_DATAFILE_OPTIONS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_datafile* file = NULL;
    penstock_dataset* dataset = NULL;
    uint64_t shape[] = {ROWS, COLUMNS};
    float got[ROWS * COLUMNS];
    penstock_request request = into(got, sizeof(got));
    options.format = "raw";
    options.rank = 2;
    options.shape = shape;
    options.dtype = "float32";
    options.offset_bytes = 128;
    CHECK(penstock_datafile_open(context, npy_file("table.npy", 0), &options, &file, &error) == PENSTOCK_OK);
    CHECK(penstock_dataset_open(file, NULL, &dataset, NULL) == PENSTOCK_OK);
    CHECK(penstock_dataset_read(dataset, NULL, &request, NULL, NULL) == PENSTOCK_OK && got[COLUMNS] == 10);
    penstock_dataset_close(dataset);
    penstock_datafile_close(file);
    shape[0] = ROWS + 1;
    CHECK(penstock_datafile_open(context, named("table.npy"), &options, &file, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(file == NULL && strstr(error.message, "needs 140 bytes at 128") != NULL);
    options.format = NULL;
    CHECK(penstock_datafile_open(context, named("table.npy"), &options, &file, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "raw") != NULL);
    penstock_context_destroy(context);
}

static void mistakes_are_refused(void) {
    penstock_context* context = made_context(0);
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_datafile* file = NULL;
    penstock_dataset* dataset = opened_dataset(context, npy_file("table.npy", 0), 0);
    penstock_dataset* other = dataset;
    float got[ROWS * COLUMNS];
    penstock_selection selection = PENSTOCK_SELECTION_INIT;
    penstock_dataset_result result = PENSTOCK_DATASET_RESULT_INIT;
    penstock_request request = into(got, sizeof(got));
    selection.rank = 1;
    CHECK(penstock_dataset_read(dataset, &selection, &request, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "rank") != NULL);
    request.memory.bytes -= 1;
    CHECK(penstock_dataset_read(dataset, NULL, &request, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    request.memory.bytes += 1;
    request.offset_bytes = 1;
    CHECK(penstock_dataset_read(dataset, NULL, &request, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    request.offset_bytes = 0;
    result.reserved = 1;
    CHECK(penstock_dataset_read(dataset, NULL, &request, &result, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_dataset_write(dataset, NULL, &request, NULL, &error) == PENSTOCK_READ_ONLY);
    other = (penstock_dataset*)(void*)context;
    CHECK(penstock_dataset_read(other, NULL, &request, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_dataset_read(NULL, NULL, &request, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_datafile_open(context, named("absent"), NULL, &file, &error) == PENSTOCK_NOT_FOUND && file == NULL);
    CHECK(penstock_datafile_open(context, pattern_file("pattern", 4096), NULL, &file, &error) == PENSTOCK_UNSUPPORTED);
    CHECK(penstock_datafile_open(context, named("table.npy"), NULL, &file, &error) == PENSTOCK_OK);
    CHECK(penstock_dataset_open(file, "dat", &other, &error) == PENSTOCK_NOT_FOUND && other == NULL);
    CHECK(strstr(error.advice, "'data'") != NULL);
    penstock_datafile_close(file);
    penstock_dataset_close(dataset);
    penstock_datafile_close(NULL);
    penstock_dataset_close(NULL);
    penstock_context_destroy(context);
}

static void run_all(void) {
    a_file_tells_its_datasets();
    boxes_are_read_in_the_order_of_bytes_of_this_machine();
    elements_go_where_strides_say();
    whole_datasets_come_into_device_memory();
    boxes_are_written_in_place();
    raw_files_are_what_the_caller_says();
    mistakes_are_refused();
}

int main(int count, char** arguments) {
    static const char* const leaves[] = {"table.npy", "pattern", NULL};
    return run_in_folder(count, arguments, run_all, leaves);
}
