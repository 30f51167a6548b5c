/* See file.h. By fread and fwrite, with a buffer of a given size. */
#include "array/file.h"
#include "ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE* stream;
static char* buffer;
static size_t buffer_size;
static const char* file_name;

double* array_memory(size_t bytes) { return malloc(bytes); }
void array_give_back(double* array) { free(array); }

void array_begin(size_t buffer_bytes) {
    buffer_size = buffer_bytes;
    buffer = buffer_bytes ? malloc(buffer_bytes) : NULL;
    if (buffer_bytes && !buffer) ranks_fail("no memory for a buffer", "");
}

void array_open(const char* file, int writes) {
    file_name = file;
    stream = fopen(file, writes ? "r+b" : "rb");
    if (!stream) ranks_fail("cannot open", file);
    if (buffer && setvbuf(stream, buffer, _IOFBF, buffer_size)) ranks_fail("cannot set the buffer of", file);
}

void array_read(double* array, size_t count) {
    if (fread(array, sizeof *array, count, stream) != count) ranks_fail("cannot read all of", file_name);
}

void array_write(const double* array, size_t count) {
    if (fwrite(array, sizeof *array, count, stream) != count || fflush(stream)) ranks_fail("cannot write", file_name);
}

void array_sync(void) {
    if (fsync(fileno(stream))) ranks_fail("cannot fsync", file_name);
}

void array_close(void) {
    if (fclose(stream)) ranks_fail("cannot close", file_name);
}

const char* array_path(void) { return "stdio"; }
