/* A process, a file, an array of doubles:
 *     PROGRAM read|write FOLDER ELEMENTS BUFFER_BYTES SEED PROCESSES SYNC
 * What is timed is what the benchmark of 2019 times: barrier, clock, the whole array, flush, barrier, clock. Process 0
 * prints a line for each process: seconds between the barriers, its own seconds of them, of open, fsync and close, and
 * how many elements that it read are wrong. Element i of process r is ((seed * 1024 + r) << 27) + i, exactly.
 */
#include "array/file.h"
#include "ranks/ranks.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 6 };

typedef struct {
    char file[4096];
    int writes, processes, sync;
    size_t count, buffer_bytes;
    int64_t seed;
} array_request;

static double element(const array_request* request, int rank, size_t index) {
    return (double)((((request->seed * 1024) + rank) << 27) + (int64_t)index);
}

static double* new_array(const array_request* request, int rank) {
    double* array = array_memory(request->count * sizeof *array);
    if (!array) ranks_fail("no memory for the array of", request->file);
    for (size_t index = 0; index < request->count; ++index)
        array[index] = request->writes ? element(request, rank, index) : NAN;
    return array;
}

static double wrong_elements(const array_request* request, int rank, const double* array) {
    size_t wrong = 0;
    for (size_t index = 0; index < request->count; ++index) wrong += array[index] != element(request, rank, index);
    return (double)wrong;
}

static void measure(const array_request* request, double* array, double* numbers) {
    double start = ranks_clock();
    array_open(request->file, request->writes);
    numbers[2] = ranks_clock() - start;
    ranks_barrier();
    start = ranks_clock();
    if (request->writes) {
        array_write(array, request->count);
    } else {
        array_read(array, request->count);
    }
    numbers[1] = ranks_clock() - start;
    ranks_barrier();
    numbers[0] = ranks_clock() - start;
    start = ranks_clock();
    if (request->sync) array_sync();
    numbers[3] = request->sync ? ranks_clock() - start : 0;
    start = ranks_clock();
    array_close();
    numbers[4] = ranks_clock() - start;
}

static void print(const double* all, int processes) {
    for (int rank = 0; rank < processes; ++rank) {
        for (int place = 0; place < NUMBERS; ++place) printf("%.9g ", all[rank * NUMBERS + place]);
        printf("%s\n", array_path());
    }
    fflush(stdout);
}

int main(int count, char** words) {
    double numbers[NUMBERS] = {0};
    if (count != 8) return 2;
    array_request request = {.writes = !strcmp(words[1], "write"), .processes = atoi(words[6]), .sync = atoi(words[7])};
    request.count = strtoull(words[3], NULL, 10);
    request.buffer_bytes = strtoull(words[4], NULL, 10);
    request.seed = atoll(words[5]);
    const int rank = ranks_begin(request.processes);
    snprintf(request.file, sizeof request.file, "%s/%d.bin", words[2], rank);
    double* all = calloc((size_t)request.processes * NUMBERS, sizeof *all);
    double* array = new_array(&request, rank);
    errno = 0;
    array_begin(request.buffer_bytes);
    measure(&request, array, numbers);
    if (!request.writes) numbers[5] = wrong_elements(&request, rank, array);
    ranks_gather(numbers, NUMBERS, all);
    if (rank == 0) print(all, request.processes);
    array_give_back(array);
    free(all);
    ranks_end();
    return 0;
}
