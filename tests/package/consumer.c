/* A program that knows only the installed penstock.h and libpenstock.so: reads its own source through the library. */
#include <penstock.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
    penstock_context_options options = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_buffer_options room = PENSTOCK_BUFFER_OPTIONS_INIT;
    penstock_request request = PENSTOCK_REQUEST_INIT;
    penstock_result result = PENSTOCK_RESULT_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = NULL;
    penstock_buffer* buffer = NULL;
    penstock_file* file = NULL;
    char start[2] = "";
    options.device = "host";
    room.bytes = 65536;
    if (count < 2 || penstock_abi_version() < PENSTOCK_ABI_VERSION ||
        penstock_context_create(&options, &context, &error) != PENSTOCK_OK ||
        penstock_buffer_allocate(context, &room, &buffer, &error) != PENSTOCK_OK ||
        penstock_buffer_memory(buffer, &request.memory, &error) != PENSTOCK_OK ||
        penstock_file_open(context, arguments[1], NULL, &file, &error) != PENSTOCK_OK ||
        penstock_read(file, &request, &result, &error) != PENSTOCK_OK ||
        penstock_copy_to_host(context, start, request.memory.data, 2, &error) != PENSTOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    penstock_file_close(file, NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
    printf("%s %s\n", penstock_version(), result.path);
    return result.reached_end && memcmp(start, "/*", 2) == 0 ? 0 : 1;
}
