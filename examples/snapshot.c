/* A snapshot of a simulation, from the memory of the GPU into a file and back, through the C ABI.
 *
 *     gcc snapshot.c $(penstock config --cflags --libs) -o snapshot
 *     ./snapshot [snapshot.bin]
 *
 * The file appears under its name when it is whole, so a run that dies leaves the older one. Without a GPU the device
 * is an emulated one on ordinary memory. A code that computes on the GPU needs none of the copies to and from the host:
 * they stand for its kernels.
 */
#include <penstock.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20 };

static double temperature(int cell) { return 273.15 + 0.001 * cell; }

/* Writes what lies in the request's memory as a new file, on stable storage when it is closed. */
static int save(const penstock_context* context, const char* name, const penstock_request* request,
                penstock_error* error) {
    penstock_open_options options = PENSTOCK_OPEN_OPTIONS_INIT;
    penstock_file* file = NULL;
    options.mode = PENSTOCK_CREATE;
    options.size_bytes = request->memory.bytes;
    options.durable = 1;
    int code = penstock_file_open(context, name, &options, &file, error);
    if (code) return code;
    code = penstock_write(file, request, NULL, error);
    if (code) {
        penstock_file_abandon(file);
        return code;
    }
    return penstock_file_close(file, error);
}

/* Fills the request's memory from the file, and says how the bytes went. */
static int load(const penstock_context* context, const char* name, const penstock_request* request,
                penstock_error* error) {
    penstock_result result = PENSTOCK_RESULT_INIT;
    penstock_file* file = NULL;
    int code = penstock_file_open(context, name, NULL, &file, error);
    if (!code) code = penstock_read(file, request, &result, error);
    if (!code) printf("%llu bytes by path %s\n", (unsigned long long)result.bytes, result.path);
    penstock_file_close(file, NULL);
    return code;
}

/* There and back. `cells` is the host's memory. */
static int run(const penstock_context* context, const char* name, penstock_buffer* buffer, double* cells) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_request request = PENSTOCK_REQUEST_INIT;
    void* on_device = penstock_buffer_pointer(buffer);
    const uint64_t bytes = COUNT * sizeof *cells;
    int code = penstock_buffer_memory(buffer, &request.memory, &error);
    for (int cell = 0; cell < COUNT; ++cell) cells[cell] = temperature(cell);
    if (!code) code = penstock_copy_to_device(context, on_device, cells, bytes, &error);
    if (!code) code = save(context, name, &request, &error);
    for (int cell = 0; cell < COUNT; ++cell) cells[cell] = 0;
    if (!code) code = penstock_copy_to_device(context, on_device, cells, bytes, &error);
    if (!code) code = load(context, name, &request, &error);
    if (!code) code = penstock_copy_to_host(context, cells, on_device, bytes, &error);
    if (code) fprintf(stderr, "%s\n", error.message);
    return code;
}

int main(int count, char** words) {
    const char* name = count > 1 ? words[1] : "snapshot.bin";
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = NULL;
    penstock_buffer* buffer = NULL;
    penstock_buffer_options size = PENSTOCK_BUFFER_OPTIONS_INIT;
    double* cells = malloc(COUNT * sizeof *cells);
    if (!cells) return 1;
    size.bytes = COUNT * sizeof *cells;
    int code = penstock_context_create(NULL, &context, &error);
    if (!code) code = penstock_buffer_allocate(context, &size, &buffer, &error);
    if (code) fprintf(stderr, "%s\n", error.message);
    if (!code) code = run(context, name, buffer, cells);
    for (int cell = 0; !code && cell < COUNT; ++cell) {
        if (cells[cell] != temperature(cell)) code = 1;
    }
    if (!code) printf("%s holds %d cells, read back as they were\n", name, COUNT);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
    free(cells);
    return code != 0;
}
