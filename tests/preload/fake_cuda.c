/* A stand-in for libcuda.so.1 whose "memory of a device" the CPU cannot reach, as it is with a GPU: the kernel answers
 * EFAULT, a copy by the CPU ends the program. The same pages are mapped a second time, where the stand-in for the
 * engine reaches them. "Managed" memory is memory of the host that CUDA knows. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST 64

static struct {
    char *seen, *shadow;
    size_t bytes;
    int managed;
} areas[MOST];
static int count;
static _Thread_local void* current;

void* fake_allocate(size_t bytes, int managed) {
    int fd = memfd_create("gpu", 0);
    if (fd < 0 || count == MOST || ftruncate(fd, (off_t)bytes) != 0) return NULL;
    char* seen = mmap(NULL, bytes, managed ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED, fd, 0);
    char* shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    areas[count].seen = seen;
    areas[count].shadow = shadow;
    areas[count].bytes = bytes;
    areas[count++].managed = managed;
    return seen;
}

static int area_of(const void* data) {
    for (int i = 0; i < count; ++i) {
        if ((const char*)data >= areas[i].seen && (const char*)data < areas[i].seen + areas[i].bytes) return i;
    }
    return -1;
}

/* Where the CPU reaches what is at `data`. Null: no memory of this GPU. */
void* fake_reach(const void* data) {
    int at = area_of(data);
    return at < 0 ? NULL : areas[at].shadow + ((const char*)data - areas[at].seen);
}

static int questions;
int fake_questions(void) { return __atomic_load_n(&questions, __ATOMIC_RELAXED); }

int cuPointerGetAttributes(unsigned number, const unsigned* asked, void** told, unsigned long long data) {
    __atomic_fetch_add(&questions, 1, __ATOMIC_RELAXED);
    int at = area_of((const void*)(uintptr_t)data);
    for (unsigned i = 0; i < number; ++i) {
        if (asked[i] == 2) *(unsigned*)told[i] = at < 0 ? 0 : 2;
        if (asked[i] == 8) *(unsigned*)told[i] = at >= 0 && areas[at].managed;
        if (asked[i] == 9) *(int*)told[i] = at < 0 ? -2 : 3;
    }
    return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
    (void)attribute;
    (void)device;
    *value = 0;
    return 0;
}

int cuCtxGetCurrent(void** context) {
    *context = current;
    return 0;
}

int cuCtxSetCurrent(void* context) {
    current = context;
    return 0;
}

/* What programs call by themselves. */
int cuInit(unsigned flags) {
    (void)flags;
    return 0;
}

int cuDeviceGet(int* device, int number) {
    *device = number;
    return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
    (void)device;
    *context = &count;
    return 0;
}

int cuMemAlloc_v2(unsigned long long* memory, size_t bytes) {
    *memory = (uintptr_t)fake_allocate(bytes, 0);
    return *memory == 0 ? 2 : 0;
}

int cuMemAllocManaged(unsigned long long* memory, size_t bytes, unsigned flags) {
    (void)flags;
    *memory = (uintptr_t)fake_allocate(bytes, 1);
    return *memory == 0 ? 2 : 0;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
    memcpy(fake_reach((void*)(uintptr_t)to), from, bytes);
    return 0;
}

int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
    memcpy(to, fake_reach((void*)(uintptr_t)from), bytes);
    return 0;
}

int cuMemsetD32_v2(unsigned long long memory, unsigned word, size_t words) {
    unsigned* data = fake_reach((void*)(uintptr_t)memory);
    for (size_t i = 0; i < words; ++i) data[i] = word;
    return 0;
}
