/* The C ABI from C, used wrongly: each mistake is refused with a code and a message, and has no effect.
 *
 * Plain C11 with penstock.h only. Runs on the emulated device unless --device names a GPU. See abi_check.h, which also
 * explains --control.
 */
#define _POSIX_C_SOURCE 200809L
#include "abi_check.h"

static void null_handles_are_refused_and_freeing_them_does_nothing(void) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_request request = PENSTOCK_REQUEST_INIT;
    penstock_result result = PENSTOCK_RESULT_INIT;
    penstock_transfer* transfer = (penstock_transfer*)&request;
    uint64_t bytes = 0;
    CHECK(penstock_read(NULL, &request, &result, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(error.code == PENSTOCK_INVALID_ARGUMENT && strstr(error.message, "null") != NULL);
    CHECK(penstock_start_write(NULL, &request, &transfer, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(transfer == NULL);
    CHECK(penstock_file_size(NULL, &bytes, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_transfer_wait(NULL, 0, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_context_create(NULL, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_buffer_pointer(NULL) == NULL);
    penstock_context_destroy(NULL);
    penstock_buffer_free(NULL);
    penstock_transfer_free(NULL);
    penstock_file_abandon(NULL);
    CHECK(penstock_file_close(NULL, &error) == PENSTOCK_OK && error.code == PENSTOCK_OK);
}

static void a_handle_of_another_kind_is_refused(void) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = made_context(0);
    uint64_t bytes = 0;
    CHECK(penstock_file_size((penstock_file*)(void*)context, &bytes, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "penstock_file") != NULL);
    penstock_context_destroy(context);
}

static void struct_sizes_are_checked(void) {
    struct {
        penstock_context_options known;
        uint64_t later;
    } newer = {PENSTOCK_CONTEXT_OPTIONS_INIT, 0};
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = NULL;
    newer.known.device = "host";
    newer.known.struct_size = 0;
    CHECK(penstock_context_create(&newer.known, &context, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(context == NULL && strstr(error.message, "struct_size") != NULL);
    newer.known.struct_size = sizeof(newer);
    CHECK(penstock_context_create(&newer.known, &context, &error) == PENSTOCK_OK);
    penstock_context_destroy(context);
    newer.later = 1;
    CHECK(penstock_context_create(&newer.known, &context, &error) == PENSTOCK_INVALID_ARGUMENT);
    error.struct_size = 8;
    CHECK(penstock_context_create(NULL, &context, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(context == NULL);
}

/* If a program left other values there, it could behave differently with a later library. */
static void reserved_fields_are_zero_in_every_struct_that_has_one(void) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context_options context_options = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_open_options open_options = PENSTOCK_OPEN_OPTIONS_INIT;
    penstock_request request = PENSTOCK_REQUEST_INIT;
    penstock_memory memory = {&error, sizeof(error), PENSTOCK_SYSTEM, 1};
    penstock_context* context = made_context(0);
    penstock_context* refused = NULL;
    penstock_file* file = NULL;
    penstock_transfer* transfer = NULL;
    context_options.device = "host";
    context_options.reserved = 1;
    CHECK(penstock_context_create(&context_options, &refused, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(refused == NULL && strstr(error.message, "penstock_context_options.reserved") != NULL);
    open_options.reserved = 1;
    CHECK(penstock_file_open(context, "/proc/self/exe", &open_options, &file, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(file == NULL && strstr(error.message, "penstock_open_options.reserved") != NULL);
    CHECK(penstock_wrap(context, &memory, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "penstock_memory.reserved") != NULL);
    CHECK(penstock_file_open(context, "/proc/self/exe", NULL, &file, &error) == PENSTOCK_OK);
    request.reserved = -1;
    CHECK(penstock_start_read(file, &request, &transfer, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(transfer == NULL && strstr(error.message, "penstock_request.reserved") != NULL);
    request.reserved = 0;
    request.memory = memory;
    CHECK(penstock_read(file, &request, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "penstock_memory.reserved") != NULL);
    penstock_file_abandon(file);
    penstock_context_destroy(context);
}

static void unknown_names_are_answered_with_the_known_ones(void) {
    penstock_context_options options = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = NULL;
    options.device = "host";
    options.path = "warp-drive";
    CHECK(penstock_context_create(&options, &context, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "warp-drive") != NULL && strstr(error.advice, "buffered") != NULL);
    options.path = NULL;
    options.device = "toaster";
    CHECK(penstock_context_create(&options, &context, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "toaster") != NULL);
}

static void a_missing_file_is_named(void) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = made_context(0);
    penstock_file* file = NULL;
    CHECK(penstock_file_open(context, named("absent"), NULL, &file, &error) == PENSTOCK_NOT_FOUND);
    CHECK(file == NULL && strcmp(error.file, named("absent")) == 0);
    CHECK(strstr(error.message, "absent") != NULL && error.operation[0] != 0 && error.cause[0] != 0);
    CHECK(penstock_file_open(context, NULL, NULL, &file, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_file_open(context, folder, NULL, &file, &error) == PENSTOCK_NOT_A_REGULAR_FILE);
    CHECK(penstock_file_open(context, "", NULL, &file, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strcmp(error.message, "open: the name is empty; give the name of a file") == 0);
    penstock_context_destroy(context);
}

static void writing_to_a_file_opened_for_reading_is_refused(void) {
    penstock_context* context = made_context(0);
    penstock_file* file = opened(context, pattern_file("readable", 4096));
    penstock_buffer* buffer = device_buffer(context, 4096);
    penstock_request request = whole(buffer);
    penstock_error error = PENSTOCK_ERROR_INIT;
    CHECK(penstock_write(file, &request, NULL, &error) != PENSTOCK_OK);
    CHECK(error.code != PENSTOCK_INTERNAL && strstr(error.message, "readable") != NULL);
    CHECK(strcmp(error.advice, "open it with PENSTOCK_READ_WRITE") == 0);
    CHECK(strstr(error.message, "; open it with PENSTOCK_READ_WRITE") != NULL && strstr(error.message, "::") == NULL);
    request.memory.data = NULL;
    CHECK(penstock_write(file, &request, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strcmp(error.advice, "give memory from penstock_buffer_allocate or penstock_wrap") == 0);
    penstock_file_close(file, NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void memory_of_the_caller_is_checked_for_its_kind(void) {
    char here[64];
    penstock_context* context = made_context(0);
    penstock_buffer* buffer = device_buffer(context, 4096);
    penstock_memory memory = {penstock_buffer_pointer(buffer), 4096, PENSTOCK_DEVICE, 0};
    CHECK(penstock_wrap(context, &memory, NULL) == PENSTOCK_OK && memory.kind == PENSTOCK_DEVICE);
    memory.bytes = 4096 * 1024;
    CHECK(penstock_wrap(context, &memory, NULL) == PENSTOCK_INVALID_ARGUMENT);
    memory.data = here;
    memory.bytes = sizeof(here);
    CHECK(penstock_wrap(context, &memory, NULL) == PENSTOCK_INVALID_ARGUMENT);
    memory.kind = PENSTOCK_SYSTEM;
    CHECK(penstock_wrap(context, &memory, NULL) == PENSTOCK_OK);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void run_all(void) {
    null_handles_are_refused_and_freeing_them_does_nothing();
    a_handle_of_another_kind_is_refused();
    struct_sizes_are_checked();
    reserved_fields_are_zero_in_every_struct_that_has_one();
    unknown_names_are_answered_with_the_known_ones();
    a_missing_file_is_named();
    writing_to_a_file_opened_for_reading_is_refused();
    memory_of_the_caller_is_checked_for_its_kind();
}

int main(int count, char** arguments) {
    static const char* const leaves[] = {"readable", NULL};
    return run_in_folder(count, arguments, run_all, leaves);
}
