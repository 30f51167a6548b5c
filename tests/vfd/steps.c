/* A model's output by HDF5, written in C and knowing of no driver: steps write|read FILE.
 *
 * python/tests/vfd/test_compiled.py links it with the HDF5 that a wheel brings, which has no headers: the functions are
 * declared here, as HDF5's manual has them. Steps are rows of a contiguous array, columns of a table have strides, and
 * chunks are compressed. `read` compares every value. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t hid_t;
typedef uint64_t hsize_t;
typedef int herr_t;
extern herr_t H5open(void);
extern hid_t H5Fcreate(const char* name, unsigned flags, hid_t create, hid_t access);
extern hid_t H5Fopen(const char* name, unsigned flags, hid_t access);
extern herr_t H5Fclose(hid_t file);
extern hid_t H5Screate_simple(int rank, const hsize_t* now, const hsize_t* most);
extern herr_t H5Sselect_hyperslab(hid_t space, int how, const hsize_t* start, const hsize_t* stride,
                                  const hsize_t* count, const hsize_t* block);
extern herr_t H5Sclose(hid_t space);
extern hid_t H5Pcreate(hid_t list);
extern herr_t H5Pset_chunk(hid_t list, int rank, const hsize_t* chunk);
extern herr_t H5Pset_deflate(hid_t list, unsigned level);
extern herr_t H5Pclose(hid_t list);
extern hid_t H5Dcreate2(hid_t at, const char* name, hid_t type, hid_t space, hid_t link, hid_t create, hid_t access);
extern hid_t H5Dopen2(hid_t at, const char* name, hid_t access);
extern herr_t H5Dwrite(hid_t set, hid_t type, hid_t memory, hid_t file, hid_t transfer, const void* data);
extern herr_t H5Dread(hid_t set, hid_t type, hid_t memory, hid_t file, hid_t transfer, void* data);
extern herr_t H5Dclose(hid_t set);
extern hid_t H5T_NATIVE_DOUBLE_g, H5P_CLS_DATASET_CREATE_ID_g;

enum { STEPS = 3, ITEMS = 1 << 20, ROWS = 50000, COLUMNS = 4, TAKEN = 3 };
static const hsize_t kSteps[2] = {STEPS, ITEMS}, kTable[2] = {ROWS, COLUMNS}, kChunk[2] = {1, 65536};
static double step[ITEMS], table[ROWS * TAKEN];
static int writes;
static hid_t file;

static hid_t need(hid_t id, const char* what) {
    if (id >= 0) return id;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static double of(int row, int item) { return row + 0.5 * item; }

/* A part of a dataset: `count` rows and columns from `start` on. */
struct part {
    hsize_t shape[2], start[2], count[2];
};

static void move(hid_t set, const struct part* part, double* data) {
    const hsize_t items = part->count[0] * part->count[1];
    hid_t chosen = need(H5Screate_simple(2, part->shape, NULL), "H5Screate_simple");
    hid_t memory = need(H5Screate_simple(1, &items, NULL), "H5Screate_simple");
    need(H5Sselect_hyperslab(chosen, 0, part->start, NULL, part->count, NULL), "H5Sselect_hyperslab");
    if (writes) need(H5Dwrite(set, H5T_NATIVE_DOUBLE_g, memory, chosen, 0, data), "H5Dwrite");
    else need(H5Dread(set, H5T_NATIVE_DOUBLE_g, memory, chosen, 0, data), "H5Dread");
    H5Sclose(memory);
    H5Sclose(chosen);
}

static hid_t dataset(const char* name, const hsize_t* shape, hid_t create) {
    if (!writes) return need(H5Dopen2(file, name, 0), "H5Dopen2");
    hid_t space = need(H5Screate_simple(2, shape, NULL), "H5Screate_simple");
    hid_t set = need(H5Dcreate2(file, name, H5T_NATIVE_DOUBLE_g, space, 0, create, 0), "H5Dcreate2");
    H5Sclose(space);
    return set;
}

/* Each returns how many numbers are wrong. */
static int steps_of(const char* name, hid_t create) {
    hid_t set = dataset(name, kSteps, create);
    int wrong = 0;
    for (int row = 0; row < STEPS; ++row) {
        const struct part part = {{STEPS, ITEMS}, {(hsize_t)row, 0}, {1, ITEMS}};
        for (int i = 0; i < ITEMS; ++i) step[i] = writes ? of(row, i) : -1;
        move(set, &part, step);
        for (int i = 0; i < ITEMS; ++i) wrong += step[i] != of(row, i);
    }
    return wrong + (need(H5Dclose(set), "H5Dclose") < 0);
}

static int columns(void) {
    hid_t set = dataset("table", kTable, 0);
    const struct part part = {{ROWS, COLUMNS}, {0, 0}, {ROWS, TAKEN}};
    int wrong = 0;
    for (int i = 0; i < ROWS * TAKEN; ++i) table[i] = writes ? of(i / TAKEN, i % TAKEN) : -1;
    move(set, &part, table);
    for (int i = 0; i < ROWS * TAKEN; ++i) wrong += table[i] != of(i / TAKEN, i % TAKEN);
    return wrong + (need(H5Dclose(set), "H5Dclose") < 0);
}

int main(int count, char** words) {
    if (count != 3 || H5open() < 0) return 2;
    writes = !strcmp(words[1], "write");
    file = writes ? H5Fcreate(words[2], 2, 0, 0) : H5Fopen(words[2], 0, 0);
    need(file, "opening the file");
    hid_t packed = need(H5Pcreate(H5P_CLS_DATASET_CREATE_ID_g), "H5Pcreate");
    need(H5Pset_chunk(packed, 2, kChunk), "H5Pset_chunk");
    need(H5Pset_deflate(packed, 1), "H5Pset_deflate");
    const int wrong = steps_of("plain", 0) + steps_of("packed", packed) + columns();
    need(H5Pclose(packed), "H5Pclose");
    need(H5Fclose(file), "H5Fclose");
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
