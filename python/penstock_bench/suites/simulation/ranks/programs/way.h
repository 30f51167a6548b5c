/* A way to write one file by all ranks. Each call is made by all of them, and ends them all where it fails. */
#ifndef WAY_H
#define WAY_H

#include "grid.h"

typedef struct {
    const char* name;
    int variables, steps; /* 0 steps: a snapshot, of which ranks have a part of z; of a history a part of y */
    int is_variant;       /* of HDF5: data are written by collective calls; of a history: it has no slots */
    grid_part part;
} way_file;

/* What a program does once, whatever it writes. */
void way_start(void);
/* The file is there, and data can be written. */
void way_begin(const way_file* file);
/* The variables lie one behind the other in memory. */
void way_step(const way_file* file, int step, const float* fields);
/* All is in the file, and readers see it. */
void way_end(const way_file* file);
void way_stop(void);

#endif
