/* See ranks.h. The processes share a barrier and the gathered numbers in a mapping. Each is killed when process 0 ends;
 * process 0 ends when one of them fails.
 */
#define _GNU_SOURCE
#include "ranks/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    pthread_barrier_t barrier;
    double numbers[];
} shared_state;

static shared_state* shared;
static int own_rank, rank_count;

static void end_all(void) {
    if (own_rank == 0) _exit(1);
    kill(getppid(), SIGTERM);
    _exit(1);
}

/* Process 0: one of the others has ended. */
static void on_child(int number) {
    int status = 0;
    (void)number;
    while (waitpid(-1, &status, WNOHANG) > 0)
        if (status != 0) _exit(1);
}

static void share(int processes) {
    const size_t bytes = sizeof *shared + sizeof(double) * RANKS_MOST_NUMBERS * (size_t)processes;
    pthread_barrierattr_t attributes;
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) ranks_fail("cannot share memory", "");
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    errno = pthread_barrier_init(&shared->barrier, &attributes, (unsigned)processes);
    if (errno) ranks_fail("cannot make a barrier", "");
}

int ranks_begin(int processes) {
    const pid_t first = getpid();
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    rank_count = processes;
    share(processes);
    sigaction(SIGCHLD, &action, NULL);
    for (int rank = 1; rank < processes; ++rank) {
        const pid_t made = fork();
        if (made < 0) ranks_fail("cannot fork", "");
        if (made > 0) continue;
        own_rank = rank;
        signal(SIGCHLD, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != first) _exit(1); /* it ended before it could be asked to take this one along */
        return rank;
    }
    return 0;
}

void ranks_barrier(void) { pthread_barrier_wait(&shared->barrier); }

double ranks_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void ranks_gather(const double* mine, int count, double* all) {
    memcpy(shared->numbers + own_rank * count, mine, sizeof *mine * (size_t)count);
    ranks_barrier();
    if (own_rank == 0) memcpy(all, shared->numbers, sizeof *all * (size_t)(count * rank_count));
}

void ranks_end(void) {
    if (own_rank != 0) return;
    signal(SIGCHLD, SIG_DFL);
    int status = 0;
    while (wait(&status) > 0)
        if (status != 0) _exit(1);
}

void ranks_fail(const char* what, const char* file) {
    fprintf(stderr, "failed: %s %s%s%s\n", what, file, errno ? ": " : "", errno ? strerror(errno) : "");
    fflush(stderr);
    end_all();
}
