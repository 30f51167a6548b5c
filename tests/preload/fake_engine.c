/* A stand-in for libpenstock.so over fake_cuda.c: the functions of the C ABI that libpenstock_preload.so calls, with
 * ordinary reads and writes. It changes the current context, as an engine on another device would. */
#include <errno.h>
#include <fcntl.h>
#include <penstock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void* fake_reach(const void* data);
int cuCtxSetCurrent(void* context);

struct penstock_context {
    int number;
};
struct penstock_file {
    int fd;
};

static int failed(const char* what) { /* FAKE_ENGINE=WHAT lets that fail */
    const char* wanted = getenv("FAKE_ENGINE");
    return wanted != NULL && strcmp(wanted, what) == 0;
}

int penstock_context_create(const penstock_context_options* options, penstock_context** context,
                            penstock_error* error) {
    (void)error;
    if (failed("context") || strcmp(options->device, "cuda:3") != 0) return PENSTOCK_DEVICE_ERROR;
    *context = calloc(1, sizeof **context);
    return PENSTOCK_OK;
}

/* Memory of the device is moved by one move, or by any copies, after the default stream was waited for. */
static _Thread_local enum { UNSETTLED, SETTLED, MOVED } stream = UNSETTLED;

int penstock_synchronize_stream(const penstock_context* context, void* which, penstock_error* error) {
    (void)context;
    (void)error;
    if (which != NULL) return PENSTOCK_INVALID_ARGUMENT;
    stream = SETTLED;
    return PENSTOCK_OK;
}

static void need_settled(int is_move) {
    if (stream == UNSETTLED || (is_move && stream == MOVED)) {
        fprintf(stderr, "the default stream was not waited for\n");
        abort();
    }
    if (is_move) stream = MOVED;
}

int penstock_wrap(const penstock_context* context, penstock_memory* memory, penstock_error* error) {
    (void)context;
    (void)error;
    cuCtxSetCurrent((void*)"engine");
    return fake_reach(memory->data) == NULL ? PENSTOCK_INVALID_ARGUMENT : PENSTOCK_OK;
}

int penstock_file_open(const penstock_context* context, const char* name, const penstock_open_options* options,
                       penstock_file** file, penstock_error* error) {
    (void)context;
    (void)error;
    int fd = failed("open") ? -1 : open(name, (options->mode == PENSTOCK_READ ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    if (fd < 0) return PENSTOCK_PERMISSION_DENIED;
    *file = malloc(sizeof **file);
    (*file)->fd = fd;
    return PENSTOCK_OK;
}

int penstock_file_close(penstock_file* file, penstock_error* error) {
    (void)error;
    close(file->fd);
    free(file);
    return PENSTOCK_OK;
}

/* Errors of the file, with the number that the kernel or another library gave. */
static const struct {
    const char* what;
    int code, number;
} kErrors[] = {{"space", PENSTOCK_NO_SPACE, 0}, {"quota", PENSTOCK_NO_SPACE, EDQUOT},
    {"limit", PENSTOCK_IO_ERROR, EFBIG}, {"cufile", PENSTOCK_IO_ERROR, 5030}};

static int error_of_file(penstock_error* error) {
    for (unsigned i = 0; i < sizeof kErrors / sizeof *kErrors; ++i) {
        if (!failed(kErrors[i].what)) continue;
        if (error != NULL) {
            error->code = kErrors[i].code;
            error->system_code = kErrors[i].number;
        }
        return kErrors[i].code;
    }
    return PENSTOCK_OK;
}

static int move(const penstock_file* file, const penstock_request* request, penstock_result* result, int writes) {
    char* data = fake_reach(request->memory.data);
    uint64_t done = 0;
    if (request->memory.kind == PENSTOCK_DEVICE) need_settled(1);
    if (failed("device")) return PENSTOCK_DEVICE_ERROR;
    while (done < request->memory.bytes) {
        off_t at = (off_t)(request->offset_bytes + done);
        ssize_t moved = writes ? pwrite(file->fd, data + done, request->memory.bytes - done, at)
                               : pread(file->fd, data + done, request->memory.bytes - done, at);
        if (moved <= 0) break;
        done += (uint64_t)moved;
    }
    result->bytes = done;
    return PENSTOCK_OK;
}

int penstock_read(const penstock_file* file, const penstock_request* request, penstock_result* result,
                  penstock_error* error) {
    (void)error;
    return move(file, request, result, 0);
}

int penstock_write(const penstock_file* file, const penstock_request* request, penstock_result* result,
                   penstock_error* error) {
    const int code = failed("device") ? PENSTOCK_OK : error_of_file(error);
    return code != PENSTOCK_OK ? code : move(file, request, result, 1);
}

int penstock_copy_to_host(const penstock_context* context, void* host, const void* device, uint64_t bytes,
                          penstock_error* error) {
    (void)context;
    (void)error;
    need_settled(0);
    memcpy(host, fake_reach(device), bytes);
    return PENSTOCK_OK;
}

int penstock_copy_to_device(const penstock_context* context, void* device, const void* host, uint64_t bytes,
                            penstock_error* error) {
    (void)context;
    (void)error;
    need_settled(0);
    memcpy(fake_reach(device), host, bytes);
    return PENSTOCK_OK;
}
