/* Ordinary calls on memory of a real GPU, timed; every byte is checked on the GPU. Words: read, write, fread or fwrite;
 * device or managed; a file; MiB. Each round prints one line: GB/s of the call, ms of the next kernel over all of the
 * memory, ms of the same kernel once more (the memory is then where the GPU has it), and how many words were wrong.
 * The driver is loaded by name and its kernels are compiled by it, so that a C compiler is all this needs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 4
#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, strerror(errno)); \
            exit(1); \
        } \
    } while (0)

typedef uint64_t Address;
static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                     void**);
static int (*synchronize)(void);
static int (*set_words)(Address, unsigned, size_t);
static int (*copy_to_host)(void*, Address, size_t);

#define LOOP \
    ".reg .pred %p<3>; .reg .b64 %d<12>; .reg .b32 %r<8>;\n" \
    "ld.param.u64 %d1,[data]; cvta.to.global.u64 %d1,%d1; ld.param.u64 %d2,[words]; ld.param.u64 %d3,[seed];\n" \
    "ld.param.u64 %d4,[wrong]; cvta.to.global.u64 %d4,%d4;\n" \
    "mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.u32 %r4,%r1,%r2,%r3;\n" \
    "cvt.u64.u32 %d5,%r4; mov.u32 %r5,%nctaid.x; mul.lo.u32 %r6,%r5,%r2; cvt.u64.u32 %d6,%r6;\n" \
    "AGAIN: setp.ge.u64 %p1,%d5,%d2; @%p1 bra END;\n" \
    "shl.b64 %d7,%d5,3; add.u64 %d8,%d1,%d7; mul.lo.u64 %d10,%d5,31; add.u64 %d10,%d10,%d3;\n"
#define PARAMETERS "(.param .u64 data, .param .u64 words, .param .u64 seed, .param .u64 wrong)\n"
static const char kKernels[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill" PARAMETERS "{\n" LOOP "st.global.u64 [%d8],%d10;\nadd.u64 %d5,%d5,%d6; bra AGAIN;\n"
    "END: ret;\n}\n"
    ".visible .entry check" PARAMETERS "{\n" LOOP
    "ld.global.u64 %d9,[%d8]; setp.eq.u64 %p2,%d9,%d10; @%p2 bra NEXT;\natom.global.add.u64 %d11,[%d4],1;\n"
    "NEXT: add.u64 %d5,%d5,%d6; bra AGAIN;\nEND: ret;\n}\n";

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void start(void* kernel, Address data, uint64_t words, Address wrong) {
    uint64_t seed = 7;
    void* all[] = {&data, &words, &seed, &wrong};
    CHECK(launch(kernel, 2048, 1, 1, 256, 1, 1, 0, NULL, all, NULL) == 0);
}

static double run(void* kernel, Address data, uint64_t words, Address wrong) {
    double began = now();
    start(kernel, data, words, wrong);
    CHECK(synchronize() == 0);
    return (now() - began) * 1e3;
}

static size_t move(const char* how, const char* name, char* data, size_t bytes) {
    size_t done = 0;
    int writes = strstr(how, "write") != NULL;
    if (how[0] == 'f') {
        FILE* file = fopen(name, writes ? "wb" : "rb");
        CHECK(file != NULL);
        done = writes ? fwrite(data, 1, bytes, file) : fread(data, 1, bytes, file);
        CHECK(fclose(file) == 0);
        return done;
    }
    int fd = writes ? open(name, O_RDWR | O_CREAT | O_TRUNC, 0644) : open(name, O_RDONLY);
    CHECK(fd >= 0);
    while (done < bytes) {
        ssize_t some = writes ? write(fd, data + done, bytes - done) : read(fd, data + done, bytes - done);
        if (some <= 0) break;
        done += (size_t)some;
    }
    int cause = errno;
    CHECK(close(fd) == 0);
    errno = cause;
    return done;
}

int main(int count, char** words) {
    CHECK(count == 5);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), *context, *module, *fill, *check;
    CHECK(library != NULL);
#define FIND(name, type) ((int(*) type)dlsym(library, name))
    launch = (int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                      void**))dlsym(library, "cuLaunchKernel");
    synchronize = FIND("cuCtxSynchronize", (void));
    set_words = FIND("cuMemsetD32_v2", (Address, unsigned, size_t));
    copy_to_host = FIND("cuMemcpyDtoH_v2", (void*, Address, size_t));
    int device;
    CHECK(FIND("cuInit", (unsigned))(0) == 0 && FIND("cuDeviceGet", (int*, int))(&device, 0) == 0);
    CHECK(FIND("cuDevicePrimaryCtxRetain", (void**, int))(&context, device) == 0);
    CHECK(FIND("cuCtxSetCurrent", (void*))(context) == 0);
    CHECK(FIND("cuModuleLoadData", (void**, const void*))(&module, kKernels) == 0);
    CHECK(FIND("cuModuleGetFunction", (void**, void*, const char*))(&fill, module, "fill") == 0);
    CHECK(FIND("cuModuleGetFunction", (void**, void*, const char*))(&check, module, "check") == 0);
    size_t bytes = (size_t)atol(words[4]) << 20;
    Address data, wrong;
    uint64_t found = 0;
    CHECK(FIND("cuMemAlloc_v2", (Address*, size_t))(&wrong, 8) == 0);
    if (strcmp(words[2], "managed") == 0) {
        CHECK(FIND("cuMemAllocManaged", (Address*, size_t, unsigned))(&data, bytes, 1) == 0);
    } else {
        CHECK(FIND("cuMemAlloc_v2", (Address*, size_t))(&data, bytes) == 0);
    }
    int writes = strstr(words[1], "write") != NULL;
    for (int round = 0; round < ROUNDS; ++round) {
        CHECK(set_words(wrong, 0, 2) == 0);
        /* Not waited for: what the default stream was given comes before the write or the read, as before a copy. The
         * CPU's own calls read managed memory at once. */
        if (writes) start(fill, data, bytes / 8, wrong);
        else CHECK(set_words(data, 0xffffffff, bytes / 4) == 0);
        if (strcmp(words[2], "managed") == 0) CHECK(synchronize() == 0);
        double began = now();
        size_t moved = move(words[1], words[3], (char*)(uintptr_t)data, bytes);
        double seconds = now() - began;
        int cause = errno;
        double next = run(check, data, bytes / 8, wrong), again = run(check, data, bytes / 8, wrong);
        CHECK(copy_to_host(&found, wrong, 8) == 0);
        printf("%zu %.2f %.2f %.2f %llu %s\n", moved, (double)moved / seconds * 1e-9, next, again,
               (unsigned long long)found, moved == bytes ? "-" : strerror(cause));
    }
    return 0;
}
