/* The C ABI from C, used correctly: round trips, short reads, waiting, cancelling, progress, evidence.
 *
 * Plain C11 with penstock.h only. Runs on the emulated device unless --device names a GPU. See abi_check.h, which also
 * explains --control.
 */
#define _POSIX_C_SOURCE 200809L
#include "abi_check.h"

static void versions_and_names_are_what_the_header_says(void) {
    char text[256];
    penstock_text names = {text, sizeof(text), 0};
    CHECK(penstock_abi_version() == PENSTOCK_ABI_VERSION);
    CHECK(strchr(penstock_version(), '.') != NULL);
    CHECK(strcmp(penstock_code_name(PENSTOCK_NO_SPACE), "no_space") == 0);
    CHECK(strcmp(penstock_code_name(4711), "unknown") == 0);
    CHECK(penstock_path_names(&names, NULL) == PENSTOCK_OK);
    CHECK(strstr(text, "uring") != NULL && names.needed == strlen(text) + 1);
}

static void what_was_written_is_read_back(void) {
    enum { bytes = 3 * 1024 * 1024 + 77 };
    penstock_context* context = made_context(0);
    penstock_buffer* out = device_buffer(context, bytes);
    penstock_buffer* in = device_buffer(context, bytes);
    penstock_open_options create = PENSTOCK_OPEN_OPTIONS_INIT;
    penstock_result result = PENSTOCK_RESULT_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_file* file = NULL;
    unsigned char* data = malloc(bytes);
    uint64_t size = 0;
    make_pattern(data, bytes);
    CHECK(penstock_copy_to_device(context, penstock_buffer_pointer(out), data, bytes, NULL) == PENSTOCK_OK);
    create.mode = PENSTOCK_CREATE;
    CHECK(penstock_file_open(context, named("trip"), &create, &file, &error) == PENSTOCK_OK);
    penstock_request request = whole(out);
    CHECK(penstock_write(file, &request, &result, &error) == PENSTOCK_OK && result.bytes == bytes);
    CHECK(access(named("trip"), F_OK) != 0); /* the file gets its name only when it is complete */
    CHECK(penstock_file_sync(file, &error) == PENSTOCK_OK);
    CHECK(penstock_file_close(file, &error) == PENSTOCK_OK);
    file = opened(context, named("trip"));
    CHECK(penstock_file_size(file, &size, &error) == PENSTOCK_OK && size == bytes);
    request = whole(in);
    CHECK(penstock_read(file, &request, &result, &error) == PENSTOCK_OK && result.bytes == bytes);
    CHECK(result.seconds > 0 && result.path[0] != 0 && strcmp(result.path, "none") != 0);
    CHECK(holds_pattern(context, in, bytes));
    CHECK(penstock_file_close(file, &error) == PENSTOCK_OK);
    free(data);
    penstock_buffer_free(in);
    penstock_buffer_free(out);
    penstock_context_destroy(context);
}

/* Negative control of the comparison above: it must notice one flipped bit in the file. */
static void one_flipped_bit_is_noticed(void) {
    enum { bytes = 100000 };
    penstock_context* context = made_context(0);
    penstock_buffer* buffer = device_buffer(context, bytes);
    penstock_request request = whole(buffer);
    FILE* stream = fopen(pattern_file("flip", bytes), "r+b");
    CHECK(stream != NULL && fseek(stream, 70001, SEEK_SET) == 0);
    const int old = fgetc(stream);
    CHECK(fseek(stream, 70001, SEEK_SET) == 0 && fputc(old ^ 4, stream) != EOF && fclose(stream) == 0);
    penstock_file* file = opened(context, named("flip"));
    CHECK(penstock_read(file, &request, NULL, NULL) == PENSTOCK_OK);
    CHECK(!holds_pattern(context, buffer, bytes));
    penstock_file_close(file, NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void a_read_over_the_end_is_short_and_says_so(void) {
    penstock_context* context = made_context(0);
    penstock_file* file = opened(context, pattern_file("short", 10000));
    penstock_buffer* buffer = device_buffer(context, 65536);
    penstock_request request = whole(buffer);
    penstock_result result = PENSTOCK_RESULT_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    CHECK(penstock_read(file, &request, &result, &error) == PENSTOCK_OK);
    CHECK(result.bytes == 10000 && result.reached_end);
    CHECK(holds_pattern(context, buffer, 10000));
    request.offset_bytes = 10001;
    CHECK(penstock_read(file, &request, &result, &error) != PENSTOCK_OK);
    CHECK(result.bytes == 0 && strstr(error.message, "short") != NULL);
    request.offset_bytes = UINT64_MAX - 5;
    CHECK(penstock_read(file, &request, &result, &error) != PENSTOCK_OK);
    request.offset_bytes = 0;
    request.memory.kind = 17;
    CHECK(penstock_read(file, &request, &result, &error) == PENSTOCK_INVALID_ARGUMENT);
    penstock_file_close(file, NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void text_that_does_not_fit_is_cut_and_says_what_it_needs(void) {
    char small[12];
    penstock_text text = {NULL, 0, 0};
    penstock_context* context = made_context(0);
    penstock_file* file = opened(context, pattern_file("proof", 50000));
    penstock_buffer* buffer = device_buffer(context, 50000);
    penstock_request request = whole(buffer);
    penstock_transfer* transfer = NULL;
    CHECK(penstock_start_read(file, &request, &transfer, NULL) == PENSTOCK_OK);
    CHECK(penstock_transfer_evidence(transfer, &text, NULL) == PENSTOCK_OK && text.needed > sizeof(small));
    char* whole_text = malloc(text.needed);
    text.data = whole_text;
    text.capacity = text.needed;
    CHECK(penstock_transfer_evidence(transfer, &text, NULL) == PENSTOCK_OK);
    CHECK(whole_text[0] == '{' && strlen(whole_text) + 1 == text.needed);
    memset(small, 'x', sizeof(small));
    text.data = small;
    text.capacity = sizeof(small) - 1;
    CHECK(penstock_transfer_evidence(transfer, &text, NULL) == PENSTOCK_OK && text.needed > text.capacity);
    CHECK(strlen(small) == sizeof(small) - 2 && strncmp(small, whole_text, strlen(small)) == 0);
    CHECK(small[sizeof(small) - 1] == 'x'); /* nothing past the capacity */
    text.data = NULL;
    CHECK(penstock_transfer_evidence(transfer, &text, NULL) == PENSTOCK_INVALID_ARGUMENT);
    free(whole_text);
    penstock_transfer_free(transfer);
    penstock_file_close(file, NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

/* 32 MiB over a link of 16 MB/s take two seconds, so the transfer is still running when the test looks. */
static void a_slow_transfer_can_be_waited_for_and_cancelled(void) {
    enum { bytes = 32 * 1024 * 1024 };
    penstock_context* context = made_context(16e6);
    penstock_file* file = opened(context, pattern_file("slow", bytes));
    penstock_buffer* buffer = device_buffer(context, bytes);
    penstock_request request = whole(buffer);
    penstock_result result = PENSTOCK_RESULT_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_transfer* transfer = NULL;
    uint64_t done = 0, total = 0;
    request.chunk_bytes = 1 << 20;
    CHECK(penstock_start_read(file, &request, &transfer, &error) == PENSTOCK_OK);
    CHECK(penstock_transfer_wait(transfer, 20, &error) == PENSTOCK_TIMED_OUT);
    CHECK(penstock_transfer_cancel(transfer, &error) == PENSTOCK_OK);
    CHECK(penstock_transfer_wait(transfer, PENSTOCK_FOREVER, &error) == PENSTOCK_OK);
    CHECK(penstock_transfer_result(transfer, &result, &error) == PENSTOCK_CANCELLED);
    CHECK(result.bytes < bytes && error.code == PENSTOCK_CANCELLED && error.message[0] != 0);
    CHECK(penstock_transfer_progress(transfer, &done, &total, &error) == PENSTOCK_OK);
    CHECK(done < total && total == bytes);
    penstock_transfer_free(transfer);
    request.timeout_ms = 30;
    CHECK(penstock_read(file, &request, &result, &error) == PENSTOCK_TIMED_OUT && result.bytes < bytes);
    penstock_file_close(file, NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

struct seen {
    uint64_t done, total;
};
static void note_progress(void* user, uint64_t done_bytes, uint64_t total_bytes) {
    struct seen* seen = user;
    seen->done = done_bytes;
    seen->total = total_bytes;
}

static void progress_is_reported_to_the_end(void) {
    enum { bytes = 4 * 1024 * 1024 };
    struct seen seen = {0, 0};
    penstock_context* context = made_context(0);
    penstock_file* file = opened(context, pattern_file("progress", bytes));
    penstock_buffer* buffer = device_buffer(context, bytes);
    penstock_request request = whole(buffer);
    request.progress = note_progress;
    request.user = &seen;
    CHECK(penstock_read(file, &request, NULL, NULL) == PENSTOCK_OK);
    CHECK(seen.done == bytes && seen.total == bytes);
    penstock_file_close(file, NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void a_pointer_says_what_memory_it_leads_to(void) {
    char here[64];
    penstock_context* context = made_context(0);
    penstock_buffer* buffer = device_buffer(context, 4096);
    char* data = penstock_buffer_pointer(buffer);
    penstock_pointer found = PENSTOCK_POINTER_INIT;
    CHECK(penstock_memory_kind(context, data + 100, &found, NULL) == PENSTOCK_OK);
    const char* number = strchr(device, ':');
    CHECK(found.kind == PENSTOCK_DEVICE && found.device_index == (number == NULL ? 0 : atoi(number + 1)));
    CHECK(found.base == data && found.bytes >= 4096);
    CHECK(penstock_memory_kind(context, here, &found, NULL) == PENSTOCK_OK);
    CHECK(found.kind == PENSTOCK_SYSTEM && found.device_index == -1 && found.base == NULL && found.bytes == 0);
    CHECK(penstock_memory_kind(NULL, here, &found, NULL) == PENSTOCK_OK && found.kind == PENSTOCK_SYSTEM);
    CHECK(penstock_memory_kind(NULL, here, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    found.struct_size = 8;
    CHECK(penstock_memory_kind(context, data, &found, NULL) == PENSTOCK_INVALID_ARGUMENT && found.base == NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void many_pieces_are_copied_by_one_call(void) {
    enum { pieces = 1000, bytes = 12, stride = 16 };
    static penstock_copy copies[pieces];
    penstock_context* context = made_context(0);
    penstock_buffer* buffer = device_buffer(context, pieces * bytes);
    penstock_buffer_options options = PENSTOCK_BUFFER_OPTIONS_INIT;
    penstock_buffer* pinned = NULL;
    options.bytes = pieces * stride;
    options.kind = PENSTOCK_PINNED;
    CHECK(penstock_buffer_allocate(context, &options, &pinned, NULL) == PENSTOCK_OK);
    unsigned char* host = penstock_buffer_pointer(pinned);
    unsigned char* data = penstock_buffer_pointer(buffer);
    unsigned char expected[pieces * bytes];
    make_pattern(expected, sizeof(expected));
    for (int i = 0; i < pieces; ++i) {
        memcpy(host + i * stride, expected + i * bytes, bytes);
        copies[i].destination = data + i * bytes;
        copies[i].source = host + i * stride;
        copies[i].bytes = bytes;
    }
    CHECK(penstock_copy_pieces(context, PENSTOCK_TO_MEMORY, copies, pieces, NULL) == PENSTOCK_OK);
    CHECK(holds_pattern(context, buffer, sizeof(expected)));
    memset(host, 0, pieces * stride);
    for (int i = 0; i < pieces; ++i) {
        copies[i].destination = host + i * stride;
        copies[i].source = data + i * bytes;
    }
    CHECK(penstock_copy_pieces(context, PENSTOCK_TO_FILE, copies, pieces, NULL) == PENSTOCK_OK);
    for (int i = 0; i < pieces; ++i) CHECK(memcmp(host + i * stride, expected + i * bytes, bytes) == 0);
    CHECK(penstock_copy_pieces(context, 2, copies, pieces, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_copy_pieces(context, PENSTOCK_TO_FILE, NULL, 1, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_copy_pieces(context, PENSTOCK_TO_FILE, NULL, 0, NULL) == PENSTOCK_OK);
    penstock_buffer_free(pinned);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void streams_are_waited_for_and_others_are_refused(void) {
    penstock_context* context = made_context(0);
    penstock_error error = PENSTOCK_ERROR_INIT;
    CHECK(penstock_synchronize_stream(context, NULL, &error) == PENSTOCK_OK);
    CHECK(penstock_synchronize_stream(NULL, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    if (strcmp(device, "host") == 0) { /* CUDA takes any address for a stream */
        CHECK(penstock_synchronize_stream(context, &error, &error) == PENSTOCK_INVALID_ARGUMENT);
    }
    penstock_context_destroy(context);
}

static void a_file_takes_the_size_it_is_given(void) {
    penstock_context* context = made_context(0);
    penstock_buffer* buffer = device_buffer(context, 10000);
    penstock_open_options change = PENSTOCK_OPEN_OPTIONS_INIT;
    penstock_request request = whole(buffer);
    penstock_result result = PENSTOCK_RESULT_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_file* file = opened(context, pattern_file("sized", 10000));
    uint64_t size = 0;
    CHECK(penstock_file_resize(file, 5, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "PENSTOCK_READ_WRITE") != NULL);
    CHECK(penstock_file_close(file, NULL) == PENSTOCK_OK);
    change.mode = PENSTOCK_READ_WRITE;
    CHECK(penstock_file_open(context, named("sized"), &change, &file, &error) == PENSTOCK_OK);
    CHECK(penstock_file_resize(file, 4000, &error) == PENSTOCK_OK);
    CHECK(penstock_file_size(file, &size, &error) == PENSTOCK_OK && size == 4000);
    CHECK(penstock_file_resize(file, 9000, &error) == PENSTOCK_OK);
    CHECK(penstock_read(file, &request, &result, &error) == PENSTOCK_OK && result.bytes == 9000);
    CHECK(holds_pattern(context, buffer, 4000));
    CHECK(!holds_pattern(context, buffer, 4002)); /* zeros came in between */
    CHECK(penstock_file_resize(file, UINT64_MAX, &error) != PENSTOCK_OK && strstr(error.file, "sized") != NULL);
    penstock_file_close(file, NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void ranges_of_two_files_move_as_one_transfer(void) {
    penstock_context* context = made_context(0);
    penstock_file* one = opened(context, pattern_file("one", 20000));
    penstock_file* two = opened(context, pattern_file("two", 30000));
    penstock_buffer* buffer = device_buffer(context, 30000);
    char* data = penstock_buffer_pointer(buffer);
    penstock_range items[2] = {{one, 0, data, 10000}, {two, 10000, data + 10000, 20000}};
    penstock_ranges ranges = PENSTOCK_RANGES_INIT;
    penstock_request request = PENSTOCK_REQUEST_INIT;
    penstock_transfer* transfer = NULL;
    penstock_result result = PENSTOCK_RESULT_INIT;
    ranges.items = items;
    ranges.count = 2;
    CHECK(penstock_start_ranges(context, &ranges, &request, &transfer, NULL) == PENSTOCK_OK);
    CHECK(penstock_transfer_result(transfer, &result, NULL) == PENSTOCK_OK && result.bytes == 30000);
    CHECK(holds_pattern(context, buffer, 30000));
    penstock_transfer_free(transfer);
    request.offset_bytes = 1;
    CHECK(penstock_start_ranges(context, &ranges, &request, &transfer, NULL) == PENSTOCK_INVALID_ARGUMENT);
    request.offset_bytes = 0;
    items[1].file = NULL;
    CHECK(penstock_start_ranges(context, &ranges, &request, &transfer, NULL) == PENSTOCK_INVALID_ARGUMENT);
    penstock_file_close(one, NULL);
    penstock_file_close(two, NULL);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void a_created_file_that_is_abandoned_never_appears(void) {
    penstock_context* context = made_context(0);
    penstock_buffer* buffer = device_buffer(context, 5000);
    penstock_request request = whole(buffer);
    penstock_open_options create = PENSTOCK_OPEN_OPTIONS_INIT;
    penstock_file* file = NULL;
    create.mode = PENSTOCK_CREATE;
    CHECK(penstock_file_open(context, named("never"), &create, &file, NULL) == PENSTOCK_OK);
    CHECK(penstock_write(file, &request, NULL, NULL) == PENSTOCK_OK);
    penstock_file_abandon(file);
    CHECK(access(named("never"), F_OK) != 0);
    create.refuse_existing = 1;
    CHECK(penstock_file_open(context, pattern_file("there", 10), &create, &file, NULL) != PENSTOCK_OK ||
          penstock_file_close(file, NULL) != PENSTOCK_OK);
    create.mode = 9;
    CHECK(penstock_file_open(context, named("never"), &create, &file, NULL) == PENSTOCK_INVALID_ARGUMENT);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void a_file_outlives_the_handle_of_its_context(void) {
    penstock_context* context = made_context(0);
    penstock_file* file = opened(context, pattern_file("outlives", 5000));
    penstock_buffer* buffer = device_buffer(context, 5000);
    penstock_request request = whole(buffer);
    penstock_result result = PENSTOCK_RESULT_INIT;
    penstock_context_destroy(context);
    CHECK(penstock_read(file, &request, &result, NULL) == PENSTOCK_OK && result.bytes == 5000);
    CHECK(penstock_file_close(file, NULL) == PENSTOCK_OK);
    penstock_buffer_free(buffer);
}

static void run_all(void) {
    versions_and_names_are_what_the_header_says();
    what_was_written_is_read_back();
    one_flipped_bit_is_noticed();
    a_read_over_the_end_is_short_and_says_so();
    text_that_does_not_fit_is_cut_and_says_what_it_needs();
    a_slow_transfer_can_be_waited_for_and_cancelled();
    progress_is_reported_to_the_end();
    a_pointer_says_what_memory_it_leads_to();
    many_pieces_are_copied_by_one_call();
    streams_are_waited_for_and_others_are_refused();
    a_file_takes_the_size_it_is_given();
    ranges_of_two_files_move_as_one_transfer();
    a_created_file_that_is_abandoned_never_appears();
    a_file_outlives_the_handle_of_its_context();
}

int main(int count, char** arguments) {
    static const char* const leaves[] = {"trip", "flip", "short", "proof", "slow", "progress", "one", "sized",
                                        "two",  "there", "outlives", NULL};
    return run_in_folder(count, arguments, run_all, leaves);
}
