/* See file.h. By Penstock's C interface, from and to ordinary memory. */
#include "array/file.h"
#include "ranks/ranks.h"

#include <errno.h>
#include <penstock.h>
#include <stdlib.h>

static penstock_context* context;
static penstock_file* file_handle;
static penstock_error error = PENSTOCK_ERROR_INIT;
static penstock_result result = PENSTOCK_RESULT_INIT;

static void check(int code) {
    if (!code) return;
    errno = 0; /* the message has the system's words */
    ranks_fail("penstock:", error.message);
}

double* array_memory(size_t bytes) { return malloc(bytes); }
void array_give_back(double* array) { free(array); }

void array_begin(size_t buffer_bytes) {
    penstock_context_options options = PENSTOCK_CONTEXT_OPTIONS_INIT;
    (void)buffer_bytes;
    options.device = "host"; /* the array is the host's */
    check(penstock_context_create(&options, &context, &error));
}

void array_open(const char* file, int writes) {
    penstock_open_options options = PENSTOCK_OPEN_OPTIONS_INIT;
    options.mode = writes ? PENSTOCK_READ_WRITE : PENSTOCK_READ;
    check(penstock_file_open(context, file, &options, &file_handle, &error));
}

static penstock_request of_array(const void* array, size_t count) {
    penstock_request request = PENSTOCK_REQUEST_INIT;
    request.memory.data = (void*)array;
    request.memory.bytes = count * sizeof(double);
    request.memory.kind = PENSTOCK_SYSTEM;
    return request;
}

void array_read(double* array, size_t count) {
    const penstock_request request = of_array(array, count);
    check(penstock_read(file_handle, &request, &result, &error));
    errno = 0;
    if (result.bytes != request.memory.bytes) ranks_fail("the file ended early", "");
}

void array_write(const double* array, size_t count) {
    const penstock_request request = of_array(array, count);
    check(penstock_write(file_handle, &request, &result, &error));
}

void array_sync(void) { check(penstock_file_sync(file_handle, &error)); }

void array_close(void) {
    check(penstock_file_close(file_handle, &error));
    penstock_context_destroy(context);
}

const char* array_path(void) { return result.path; }
