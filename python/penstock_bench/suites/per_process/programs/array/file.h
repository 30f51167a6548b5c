/* One way to move a whole array between memory and a file: stdio.c, penstock.c, device_calls.cu. main.c calls
 * these in this order, and times them. Each ends the program by ranks_fail when it fails.
 */
#ifndef PENSTOCK_BENCH_ARRAY_FILE_H
#define PENSTOCK_BENCH_ARRAY_FILE_H

#include <stddef.h>

/* The array; null where there is no memory for it. */
double* array_memory(size_t bytes);
void array_give_back(double* array);
/* Whatever a process makes once. `buffer_bytes` is of the runtime's buffer; 0: there is none to set. */
void array_begin(size_t buffer_bytes);
/* The file exists, and is as large as the array. */
void array_open(const char* file, int writes);
void array_read(double* array, size_t count);
/* Returns when the system has all bytes, on stable storage or not. */
void array_write(const double* array, size_t count);
void array_sync(void);
void array_close(void);
/* By which path the bytes went, in a word. */
const char* array_path(void);

#endif
