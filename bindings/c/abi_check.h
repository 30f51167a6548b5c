/* What the C ABI tests share: a check that counts failures, a scratch folder, files and buffers of a known pattern.
 *
 * Everything is static, because each test program is one source that includes this.
 * Requires: the source defines _POSIX_C_SOURCE before.
 */
#ifndef PENSTOCK_ABI_CHECK_H
#define PENSTOCK_ABI_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "penstock.h"

static int failures = 0;
static char folder[256];
static const char* device = "host"; /* --device NAME runs the same tests on a GPU */

#define CHECK(condition) check((condition) != 0, #condition, __LINE__)
static inline int check(int holds, const char* text, int line) {
    if (!holds) {
        ++failures;
        fprintf(stderr, "abi_test.c:%d: does not hold: %s\n", line, text);
    }
    return holds;
}

/* Whether the call was refused by this code and one line with these words in it. */
#define check_refused(code, wanted, error, words) check_line((code) == (wanted), error, words, __LINE__)
static inline void check_line(int is_code, const penstock_error* error, const char* words, int line) {
    const int is_line = strstr(error->message, words) != NULL && strchr(error->message, '\n') == NULL;
    if (check(is_code && is_line, words, line)) return;
    fprintf(stderr, "  %d: %s\n", error->code, error->message);
}

static inline const char* named(const char* leaf) {
    static char name[512];
    snprintf(name, sizeof(name), "%s/%s", folder, leaf);
    return name;
}

/* Makes a context on the device under test. A throttled context always uses the emulated device. */
static inline penstock_context* made_context(double bandwidth_bytes_per_s) {
    penstock_context_options options = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = NULL;
    options.device = bandwidth_bytes_per_s > 0 ? "host" : device;
    options.emulated_bandwidth_bytes_per_s = bandwidth_bytes_per_s;
    if (!CHECK(penstock_context_create(&options, &context, &error) == PENSTOCK_OK)) {
        fprintf(stderr, "  %s\n", error.message);
        exit(1);
    }
    return context;
}

static inline penstock_buffer* device_buffer(const penstock_context* context, uint64_t bytes) {
    penstock_buffer_options options = PENSTOCK_BUFFER_OPTIONS_INIT;
    penstock_buffer* buffer = NULL;
    options.bytes = bytes;
    CHECK(penstock_buffer_allocate(context, &options, &buffer, NULL) == PENSTOCK_OK);
    CHECK(penstock_buffer_pointer(buffer) != NULL);
    return buffer;
}

static inline penstock_request whole(const penstock_buffer* buffer) {
    penstock_request request = PENSTOCK_REQUEST_INIT;
    CHECK(penstock_buffer_memory(buffer, &request.memory, NULL) == PENSTOCK_OK);
    return request;
}

static inline void make_pattern(unsigned char* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) data[i] = (unsigned char)((i * 2654435761u) >> 13);
}

/* Makes a file of `bytes` pattern bytes with stdio. */
static inline const char* pattern_file(const char* leaf, size_t bytes) {
    unsigned char* data = malloc(bytes);
    FILE* file = fopen(named(leaf), "wb");
    make_pattern(data, bytes);
    CHECK(file != NULL && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0);
    free(data);
    return named(leaf);
}

static inline penstock_file* opened(const penstock_context* context, const char* name) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_file* file = NULL;
    if (!CHECK(penstock_file_open(context, name, NULL, &file, &error) == PENSTOCK_OK)) {
        fprintf(stderr, "  %s\n", error.message);
    }
    return file;
}

static inline int holds_pattern(const penstock_context* context, const penstock_buffer* buffer, size_t bytes) {
    unsigned char* got = malloc(bytes);
    unsigned char* wanted = malloc(bytes);
    make_pattern(wanted, bytes);
    CHECK(penstock_copy_to_host(context, got, penstock_buffer_pointer(buffer), bytes, NULL) == PENSTOCK_OK);
    const int same = memcmp(got, wanted, bytes) == 0;
    free(got);
    free(wanted);
    return same;
}

/* Runs the tests in a scratch folder. After `leaves` are removed, the folder must be empty. With --control one check
 * fails on purpose: the program must then exit non-zero, which proves that it notices a failed check. */
static inline int run_in_folder(int count, char** arguments, void (*tests)(void), const char* const* leaves) {
    const char* base = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/penstock-abi-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(folder) == NULL) return 2;
    if (count > 2 && strcmp(arguments[1], "--device") == 0) device = arguments[2];
    if (count > 1 && strcmp(arguments[1], "--control") == 0) {
        CHECK(penstock_abi_version() == 0);
    } else {
        tests();
    }
    for (; *leaves != NULL; ++leaves) unlink(named(*leaves));
    if (rmdir(folder) != 0) CHECK(!"the folder holds a file that nobody named");
    fprintf(stderr, "%d checks failed\n", failures);
    return failures == 0 ? 0 : 1;
}

#endif
