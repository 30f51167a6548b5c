/* The processes of a run: those that MPI started (mpi.c), or those that the program forks (fork.c). Fortran
 * calls the same functions. What must stay true: a process that fails ends all of them, so that none waits for ever.
 */
#ifndef PENSTOCK_BENCH_RANKS_H
#define PENSTOCK_BENCH_RANKS_H

enum { RANKS_MOST_NUMBERS = 8 };

/* Returns the number of this process, from 0. `processes` is how many there are to be. */
int ranks_begin(int processes);
void ranks_barrier(void);
/* Wall-clock seconds. */
double ranks_clock(void);
/* `all` at process 0 gets `count` numbers of each process. At most RANKS_MOST_NUMBERS. */
void ranks_gather(const double* mine, int count, double* all);
/* Process 0 returns when all others have ended. */
void ranks_end(void);
/* Says what failed on stderr, with errno's words unless it is 0, and ends all processes. Does not return. */
void ranks_fail(const char* what, const char* file);

#endif
