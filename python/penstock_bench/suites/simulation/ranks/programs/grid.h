/* The grid that all ranks have together, the box of each, and what they write: the value of a cell is its number in the
 * grid, its last 20 bits, and 2^20 times the last 4 bits of the number of the variable and three times that of the
 * step; each is exact. */
#ifndef GRID_H
#define GRID_H

#include <stdint.h>

typedef struct {
    int rank, ranks;
    uint64_t whole[3]; /* cells in z, y and x */
    uint64_t first[3]; /* of the box of this rank */
    uint64_t box[3];
} grid_part;

/* Begins MPI. `words` are the number of ranks that were asked for, and the cells; `axis` is divided. */
grid_part grid_begin(char** words, int axis);
uint64_t grid_cells(const grid_part* part);
void grid_fill(const grid_part* part, int step, int variable, float* values);
/* The name of a variable; room for 16 bytes. */
void grid_variable(char* name, int variable);
/* Ends all ranks. */
void grid_fail(const char* what, const char* cause);

#endif
