/* Ranks that write a history together and go on whatever they are told: wrong_history NAME MISTAKE. The last rank makes
 * the mistake, in step 3 of 6 or before the first one; with "full" its disk is full in step 5, and the disks are slower
 * than the model. Each rank prints every error that it gets, and that it came to its end.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "penstock_mpi.h"

enum { ROWS = 2, FEW = 5000, MANY = 200000, STEPS = 6 };

static penstock_error error = PENSTOCK_ERROR_INIT;
static int rank, ranks, step;
static const char* mistake = "none";
static int columns = FEW;

/* Whether the last rank makes it now. */
static int does(const char* what) {
    return rank == ranks - 1 && (step == 0 || step == 3) && strcmp(mistake, what) == 0;
}

/* In one write, so that lines of ranks are not mixed. */
static void tell(const char* what, const char* text) {
    char line[4096];
    const int bytes = snprintf(line, sizeof(line), "rank %d step %d %s: %s\n", rank, step, what, text);
    if (write(2, line, (size_t)bytes) != bytes) _exit(3);
}

static void looked(const char* what, int code) {
    if (code == PENSTOCK_OK) return;
    tell(what, error.message);
}

/* Four steps of time and two fields fit behind the header, and a part of the fifth. */
static void fill_disk(void) {
    const rlim_t step_bytes = 8 + 2 * sizeof(float) * (rlim_t)ranks * ROWS * columns;
    const struct rlimit room = {4096 + 4 * step_bytes + step_bytes / 4, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &room);
}

static penstock_history* opened(const penstock_context* context, const char* name) {
    penstock_history_options options = penstock_mpi_history_options(MPI_COMM_WORLD);
    penstock_history* history = NULL;
    options.memory = PENSTOCK_SYSTEM;
    if (does("calendar")) options.calendar = "maya";
    if (does("full")) fill_disk();
    options.durable = strcmp(mistake, "full") == 0; /* slower than the model, which does not wait */
    options.slots = 8;
    looked("open", penstock_history_open(context, name, &options, &history, &error));
    return history;
}

static void define(penstock_history* history) {
    const char* const names[] = {"y", "x"};
    uint64_t shape[] = {ROWS, (uint64_t)columns}, start[] = {ROWS * (uint64_t)rank, 0};
    const uint64_t whole[] = {ROWS * (uint64_t)ranks, (uint64_t)columns};
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    variable.name = "T";
    variable.dimensions = names;
    variable.shape = shape;
    variable.global_shape = whole;
    variable.start = start;
    variable.rank = 2;
    if (does("overlap")) --start[0];
    if (does("gap")) --shape[0];
    if (does("outside")) ++start[0];
    if (does("whole")) {
        shape[0] = whole[0];
        variable.global_shape = variable.start = NULL;
    }
    looked("define", penstock_history_define(history, &variable, &error));
    variable.name = "m";
    variable.statistic = PENSTOCK_MEAN;
    looked("define", penstock_history_define(history, &variable, &error));
    variable.name = "more";
    if (does("variable")) looked("define", penstock_history_define(history, &variable, &error));
}

static void put(penstock_history* history, const char* variable) {
    static float field[ROWS * MANY];
    for (int i = 0; i < ROWS * columns; ++i) field[i] = (float)(1000 * step + 10 * (ROWS * rank + i / columns));
    looked("put", penstock_history_put(history, variable, does("null") ? NULL : field, &error));
}

static void run(penstock_history* history) {
    for (step = 1; step <= STEPS; ++step) {
        if (!does("missing")) put(history, "T");
        if (does("twice")) put(history, "T");
        if (does("unknown")) put(history, "U");
        put(history, "m");
        const double time = does("nan") ? NAN : does("early") ? 1.5 : does("times") ? 3.5 : step;
        looked("end", penstock_mpi_history_end_step(history, time, MPI_COMM_WORLD, &error));
    }
}

int main(int count, char** arguments) {
    penstock_context_options with = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_context* context = NULL;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count > 2) mistake = arguments[2];
    if (strcmp(mistake, "full") == 0) columns = MANY;
    with.device = "host";
    looked("context", penstock_context_create(&with, &context, &error));
    penstock_history* history = opened(context, arguments[1]);
    define(history);
    looked("begin", penstock_mpi_history_begin(history, MPI_COMM_WORLD, &error));
    run(history);
    looked("close", penstock_mpi_history_close(history, MPI_COMM_WORLD, &error));
    penstock_context_destroy(context);
    tell("end of the model", "reached");
    MPI_Finalize();
    return 0;
}
