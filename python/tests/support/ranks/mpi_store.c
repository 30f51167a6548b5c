/* Ranks that write a history together: mpi_store NAME FORMAT COMPRESSION STEPS COLUMNS ENDS [FAULT], where ENDS are the
 * rows at which the boxes of the ranks end, as 4,8,12. Rank 0 says after each step how many are published; STEPS 0: for
 * ever. FAULT is of the last rank: full, it cannot make its files larger from step 3 on; times, from then on it gives
 * another time; gap, it has one row less; gaps, which is allowed. A rank that gets an error prints it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "penstock_mpi.h"

enum { MOST_RANKS = 64 };

static penstock_error error = PENSTOCK_ERROR_INIT;
static int rank, ranks;
static uint64_t start[2], shape[2], whole[2];

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "rank %d has: %s\n", rank, error.message);
    MPI_Finalize();
    exit(1);
}

static uint64_t ends_of(char* text, uint64_t* ends) {
    int count = 0;
    for (char* one = strtok(text, ","); one != NULL && count < MOST_RANKS; one = strtok(NULL, ",")) {
        ends[count++] = strtoull(one, NULL, 10);
    }
    return ends[count - 1];
}

static void define(penstock_history* history) {
    const char* const names[] = {"y", "x"};
    const char* const level[] = {"z"};
    const uint64_t levels = 3;
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    variable.name = "T";
    variable.dtype = "float32";
    variable.dimensions = names;
    variable.shape = shape;
    variable.global_shape = whole;
    variable.start = start;
    variable.rank = 2;
    need(penstock_history_define(history, &variable, &error));
    variable.name = "m";
    variable.source_dtype = "float32";
    variable.dtype = "float64";
    variable.statistic = PENSTOCK_MEAN;
    variable.keep_bits = 40;
    need(penstock_history_define(history, &variable, &error));
    penstock_history_variable of_first = PENSTOCK_HISTORY_VARIABLE_INIT;
    of_first.name = "level";
    of_first.dtype = "float32";
    of_first.dimensions = level;
    of_first.shape = &levels;
    of_first.rank = 1;
    need(penstock_history_define(history, &of_first, &error));
}

/* What fails here is told to all by the end of the step. */
static void put(penstock_history* history, float* field, int step) {
    const float levels[3] = {(float)step, 1, 2};
    for (uint64_t y = 0; y < shape[0]; ++y) {
        for (uint64_t x = 0; x < shape[1]; ++x) {
            field[y * shape[1] + x] = (float)(1000 * (step % 1000) + 100 * (int)(start[0] + y)) + (float)(x % 97);
        }
    }
    penstock_history_put(history, "T", field, NULL);
    penstock_history_put(history, "m", field, NULL);
    penstock_history_put(history, "m", field, NULL);
    penstock_history_put(history, "level", levels, NULL);
}

static void fill_disk(void) {
    const struct rlimit none = {4096, 4096};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
}

int main(int count, char** arguments) {
    uint64_t ends[MOST_RANKS] = {0};
    penstock_context_options with = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_context* context = NULL;
    penstock_history* history = NULL;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    with.device = "host";
    need(penstock_context_create(&with, &context, &error));
    const int steps = atoi(arguments[4]);
    const char* const fault = count > 7 ? arguments[7] : "";
    whole[0] = ends_of(arguments[6], ends);
    whole[1] = shape[1] = strtoull(arguments[5], NULL, 10);
    start[0] = rank == 0 ? 0 : ends[rank - 1];
    shape[0] = ends[rank] - start[0];
    if (strncmp(fault, "gap", 3) == 0 && rank == ranks - 1) --shape[0];
    penstock_history_options options = penstock_mpi_history_options(MPI_COMM_WORLD);
    options.may_have_gaps = strcmp(fault, "gaps") == 0;
    options.memory = PENSTOCK_SYSTEM;
    options.format = arguments[2];
    options.compression = arguments[3];
    options.encode_threads = 1;
    options.durable = getenv("DURABLE") != NULL;
    need(penstock_history_open(context, arguments[1], &options, &history, &error));
    define(history);
    need(penstock_mpi_history_begin(history, MPI_COMM_WORLD, &error));
    float* field = malloc((shape[0] * shape[1] + 1) * sizeof(float));
    for (int step = 1; steps == 0 || step <= steps; ++step) {
        penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
        const char* const last = step >= 3 && rank == ranks - 1 ? fault : "";
        if (strcmp(last, "full") == 0) fill_disk();
        put(history, field, step);
        const double time = 10.0 * step + (strcmp(last, "times") == 0 ? 0.5 : 0);
        need(penstock_mpi_history_end_step(history, time, MPI_COMM_WORLD, &error));
        need(penstock_history_describe(history, &facts, &error));
        if (rank == 0) printf("%d\n", (int)facts.steps_published);
        fflush(stdout);
    }
    need(penstock_mpi_history_close(history, MPI_COMM_WORLD, &error));
    free(field);
    penstock_context_destroy(context);
    MPI_Finalize();
    return 0;
}
