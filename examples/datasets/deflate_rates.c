/* How fast three libraries inflate what a file's chunks hold, one core, by the thread's own time:
 *
 *   gcc -O2 -o /tmp/rates examples/datasets/deflate_rates.c -ldeflate -lisal -lz && /tmp/rates CHUNK.z...
 *
 * A CHUNK.z is a zlib stream of at most 16 MiB. The libraries take turns, 41 times; medians are printed, and a result
 * that differs from zlib's ends the program. docs/decisions/0068 has the figures of one machine. */
#include <isa-l/igzip_lib.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#define MOST (16 << 20)
#define TURNS 41

static unsigned char packed[MOST], unpacked[MOST], wanted[MOST];
static struct libdeflate_decompressor* decompressor;

/* Each returns how many bytes it made of `bytes` in `packed`; 0: it could not. */
static size_t by_libdeflate(size_t bytes) {
    size_t made = 0;
    return libdeflate_zlib_decompress(decompressor, packed, bytes, unpacked, MOST, &made) == 0 ? made : 0;
}

static size_t by_igzip(size_t bytes) {
    static struct inflate_state state;
    isal_inflate_init(&state);
    state.next_in = packed;
    state.avail_in = (uint32_t)bytes;
    state.next_out = unpacked;
    state.avail_out = MOST;
    state.crc_flag = ISAL_ZLIB; /* the checksum is verified, as by the others */
    return isal_inflate_stateless(&state) == 0 ? state.total_out : 0;
}

static size_t by_zlib(size_t bytes) {
    uLongf made = MOST;
    return uncompress(unpacked, &made, packed, bytes) == Z_OK ? made : 0;
}

static const struct {
    const char* name;
    size_t (*run)(size_t);
} kLibraries[] = {{"libdeflate", by_libdeflate}, {"igzip", by_igzip}, {"zlib", by_zlib}};
enum { LIBRARIES = sizeof kLibraries / sizeof *kLibraries };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int ascending(const void* a, const void* b) {
    const double one = *(const double*)a, other = *(const double*)b;
    return (one > other) - (one < other);
}

static int compare(const char* name) {
    FILE* file = fopen(name, "rb");
    if (file == NULL) return perror(name), 1;
    const size_t bytes = fread(packed, 1, MOST, file);
    fclose(file);
    uLongf made = MOST;
    if (uncompress(wanted, &made, packed, bytes) != Z_OK) return fprintf(stderr, "%s: no zlib stream\n", name), 1;
    double taken[LIBRARIES][TURNS];
    for (int turn = 0; turn < TURNS; ++turn) {
        for (int one = 0; one < LIBRARIES; ++one) {
            memset(unpacked, 0, made);
            const double began = seconds();
            const size_t got = kLibraries[one].run(bytes);
            taken[one][turn] = seconds() - began;
            if (got == made && memcmp(unpacked, wanted, made) == 0) continue;
            return fprintf(stderr, "%s: %s made other bytes\n", name, kLibraries[one].name), 1;
        }
    }
    printf("%s", name);
    for (int one = 0; one < LIBRARIES; ++one) {
        qsort(taken[one], TURNS, sizeof(double), ascending);
        printf("  %s %.2f GB/s", kLibraries[one].name, (double)made / taken[one][TURNS / 2] * 1e-9);
    }
    return puts(""), 0;
}

int main(int count, char** names) {
    decompressor = libdeflate_alloc_decompressor();
    int failed = count < 2;
    for (int i = 1; i < count; ++i) failed |= compare(names[i]);
    libdeflate_free_decompressor(decompressor);
    return failed;
}
