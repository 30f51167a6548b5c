/* A box of an array in an NPY file, read by its name into memory of the device, through the C ABI.
 *
 *     gcc dataset.c $(penstock config --cflags --libs) -o dataset
 *     ./dataset [field.npy]
 *
 * The program makes the file itself, as NumPy would: float64, 100 rows of 64 columns, row + column / 1000. Any file of
 * NPY, classic netCDF or safetensors is opened alike. Without a GPU the device is an emulated one.
 */
#include <penstock.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 100, COLUMNS = 64, FIRST = 40, COUNT = 3 };

static double value_at(int row, int column) { return row + column / 1000.0; }

static int make(const char* name) {
    char header[118];
    FILE* file = fopen(name, "wb");
    if (!file) return 1;
    memset(header, ' ', sizeof header);
    const int used = snprintf(header, sizeof header, "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }",
                              ROWS, COLUMNS);
    header[used] = ' ';
    header[sizeof header - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, sizeof header, file);
    for (int cell = 0; cell < ROWS * COLUMNS; ++cell) {
        const double value = value_at(cell / COLUMNS, cell % COLUMNS);
        fwrite(&value, sizeof value, 1, file);
    }
    return fclose(file);
}

/* Rows from FIRST on, into the request's memory, and says how they came. */
static int read_rows(const penstock_dataset* dataset, const penstock_request* request, penstock_error* error) {
    const uint64_t start[] = {FIRST, 0}, count[] = {COUNT, COLUMNS};
    penstock_selection rows = PENSTOCK_SELECTION_INIT;
    penstock_dataset_result result = PENSTOCK_DATASET_RESULT_INIT;
    rows.rank = 2;
    rows.start = start;
    rows.count = count;
    const int code = penstock_dataset_read(dataset, &rows, request, &result, error);
    if (!code) printf("%llu bytes by path %s\n", (unsigned long long)result.bytes, result.path);
    return code;
}

static int run(const penstock_context* context, const char* name, double* rows, penstock_error* error) {
    penstock_datafile* file = NULL;
    penstock_dataset* dataset = NULL;
    penstock_dataset_info info = PENSTOCK_DATASET_INFO_INIT;
    penstock_buffer* buffer = NULL;
    penstock_buffer_options size = PENSTOCK_BUFFER_OPTIONS_INIT;
    penstock_request request = PENSTOCK_REQUEST_INIT;
    size.bytes = sizeof(double) * COUNT * COLUMNS;
    int code = penstock_datafile_open(context, name, NULL, &file, error);
    if (!code) code = penstock_dataset_open(file, "data", &dataset, error);
    if (!code) code = penstock_dataset_describe(dataset, &info, error);
    if (!code) printf("%s: %s, %llu dimensions\n", name, info.dtype, (unsigned long long)info.rank);
    if (!code) code = penstock_buffer_allocate(context, &size, &buffer, error);
    if (!code) code = penstock_buffer_memory(buffer, &request.memory, error);
    if (!code) code = read_rows(dataset, &request, error);
    if (!code) code = penstock_copy_to_host(context, rows, penstock_buffer_pointer(buffer), size.bytes, error);
    penstock_buffer_free(buffer);
    penstock_dataset_close(dataset);
    penstock_datafile_close(file);
    return code;
}

int main(int count, char** words) {
    const char* name = count > 1 ? words[1] : "field.npy";
    static double rows[COUNT * COLUMNS];
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = NULL;
    if (make(name)) return 1;
    int code = penstock_context_create(NULL, &context, &error);
    if (!code) code = run(context, name, rows, &error);
    if (code) fprintf(stderr, "%s\n", error.message);
    for (int cell = 0; !code && cell < COUNT * COLUMNS; ++cell) {
        if (rows[cell] != value_at(FIRST + cell / COLUMNS, cell % COLUMNS)) code = 1;
    }
    penstock_context_destroy(context);
    return code;
}
