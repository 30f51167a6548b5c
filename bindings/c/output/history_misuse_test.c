/* What a model does wrong with a history, in C: each is refused in one line that says what to do, nothing hangs, and
 * the model goes on, with output where that is possible and without where it is not.
 *
 * See abi_check.h, which also explains --control. wrong_handles_test.c has null handles.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "c/abi_check.h"
#include "penstock_history.h"

enum { COUNT = 50000 };

static const char* const kNames[] = {"x"};
static const uint64_t kShape[] = {COUNT};
static double field[COUNT];

static penstock_history* of_host(const penstock_context* context, const char* leaf, uint32_t process,
                                 uint32_t processes) {
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history* history = NULL;
    options.memory = PENSTOCK_SYSTEM;
    options.process = process;
    options.processes = processes;
    CHECK(penstock_history_open(context, named(leaf), &options, &history, NULL) == PENSTOCK_OK);
    return history;
}

static void define(penstock_history* history, const char* name) {
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    variable.name = name;
    variable.source_dtype = "float64";
    variable.dimensions = kNames;
    variable.shape = kShape;
    variable.rank = 1;
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_OK);
}

static void read_whole(const penstock_context* context, const char* name, void* into, uint64_t bytes) {
    penstock_request request = PENSTOCK_REQUEST_INIT;
    penstock_datafile* file = NULL;
    penstock_dataset* dataset = NULL;
    request.memory.data = into;
    request.memory.bytes = bytes;
    request.memory.kind = PENSTOCK_SYSTEM;
    CHECK(penstock_datafile_open(context, named("history.nc"), NULL, &file, NULL) == PENSTOCK_OK);
    CHECK(penstock_dataset_open(file, name, &dataset, NULL) == PENSTOCK_OK);
    CHECK(penstock_dataset_read(dataset, NULL, &request, NULL, NULL) == PENSTOCK_OK);
    penstock_dataset_close(dataset);
    penstock_datafile_close(file);
}

static void calls_that_make_no_sense(void) {
    penstock_context* context = made_context(0);
    penstock_history* history = of_host(context, "history.nc", 0, 1);
    penstock_history* second = of_host(context, "history.nc", 0, 1);
    penstock_error error = PENSTOCK_ERROR_INIT;
    define(history, "T");
    define(second, "T");
    check_refused(penstock_history_put(history, "U", field, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                  "no variable 'U' is defined; defined are: T");
    CHECK(penstock_history_put(history, "T", field, NULL) == PENSTOCK_OK);
    check_refused(penstock_history_put(second, "T", field, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                  "another history, of this process or another one, writes it");
    check_refused(penstock_history_put(history, "T", field, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                  "variable 'T' was put already in this step; end the step first");
    check_refused(penstock_history_end_step(history, NAN, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                  "the time is no number; give a finite time");
    check_refused(penstock_history_put(history, "T", NULL, &error), PENSTOCK_INVALID_ARGUMENT, &error, "T");
    CHECK(penstock_history_end_step(history, 1, NULL) == PENSTOCK_OK);
    check_refused(penstock_history_end_step(history, 2, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                  "variable 'T' was not put in this step");
    CHECK(penstock_history_put(history, "T", field, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_end_step(history, 2, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_close(history, NULL) == PENSTOCK_OK);
    penstock_history_abandon(second);
    penstock_context_destroy(context);
}

static void definitions_that_make_no_sense(void) {
    static const char* const names[] = {"t1", "t2", "t3", "t4", "t5", "t6", "t7"};
    static const uint64_t ones[] = {1, 1, 1, 1, 1, 1, 1}, other[] = {COUNT - 1};
    penstock_context* context = made_context(0);
    penstock_history* history = of_host(context, "history.nc", 0, 1);
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    check_refused(penstock_history_begin(history, &error), PENSTOCK_INVALID_ARGUMENT, &error, "no variable is defined");
    define(history, "T");
    variable.name = "T";
    variable.dimensions = kNames;
    variable.shape = kShape;
    variable.rank = 1;
    check_refused(penstock_history_define(history, &variable, &error), PENSTOCK_INVALID_ARGUMENT, &error, "'T'");
    variable.name = "U";
    variable.shape = other;
    check_refused(penstock_history_define(history, &variable, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                  "variable 'U' has 49999 elements along 'x', others have 50000; give dimensions of another length");
    variable.dimensions = names;
    variable.shape = ones;
    variable.rank = 7;
    check_refused(penstock_history_define(history, &variable, &error), PENSTOCK_INVALID_ARGUMENT, &error, "'U'");
    variable.rank = 1;
    variable.dtype = "float33";
    check_refused(penstock_history_define(history, &variable, &error), PENSTOCK_INVALID_ARGUMENT, &error, "float33");
    check_refused(penstock_history_end_step(history, 1, &error), PENSTOCK_INVALID_ARGUMENT, &error, "nothing was put");
    CHECK(penstock_history_begin(history, NULL) == PENSTOCK_OK);
    variable.dtype = NULL;
    check_refused(penstock_history_define(history, &variable, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                  "define before");
    check_refused(penstock_history_begin(history, &error), PENSTOCK_INVALID_ARGUMENT, &error, "the history has begun");
    CHECK(penstock_history_put(history, "T", field, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_end_step(history, 1, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_close(history, NULL) == PENSTOCK_OK);
    penstock_context_destroy(context);
}

/* What is put into a step that is dropped is not in the file, and neither is it in a mean of the next one. */
static void steps_that_are_dropped(void) {
    penstock_context* context = made_context(0);
    penstock_history* history = of_host(context, "history.nc", 0, 1);
    penstock_history_variable mean = PENSTOCK_HISTORY_VARIABLE_INIT;
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    static float found[COUNT], wrong[COUNT];
    mean.name = "m";
    mean.dimensions = kNames;
    mean.shape = kShape;
    mean.rank = 1;
    mean.statistic = PENSTOCK_MEAN;
    CHECK(penstock_history_define(history, &mean, NULL) == PENSTOCK_OK);
    check_refused(penstock_history_check_step(history, 1, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                  "nothing was put");
    wrong[COUNT - 1] = 1e30F;
    CHECK(penstock_history_put(history, "m", wrong, NULL) == PENSTOCK_OK);
    check_refused(penstock_history_check_step(history, NAN, &error), PENSTOCK_INVALID_ARGUMENT, &error, "no number");
    CHECK(penstock_history_drop_step(history, NULL) == PENSTOCK_OK);
    check_refused(penstock_history_check_step(history, 1, &error), PENSTOCK_INVALID_ARGUMENT, &error, "was not put in");
    for (int i = 1; i <= 2; ++i) {
        wrong[COUNT - 1] = (float)i;
        CHECK(penstock_history_put(history, "m", wrong, NULL) == PENSTOCK_OK);
    }
    CHECK(penstock_history_check_step(history, 1, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_end_step(history, 1, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_wait(history, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_describe(history, &facts, NULL) == PENSTOCK_OK && facts.steps_published == 1);
    CHECK(penstock_history_close(history, NULL) == PENSTOCK_OK);
    read_whole(context, "m", found, sizeof(found));
    CHECK(found[COUNT - 1] == 1.5F && found[0] == 0);
    penstock_context_destroy(context);
}

static void memory_of_another_kind_or_size(void) {
    penstock_context* context = made_context(0);
    penstock_buffer* small = device_buffer(context, COUNT * sizeof(double) - 8);
    penstock_history* history = NULL;
    penstock_error error = PENSTOCK_ERROR_INIT;
    CHECK(penstock_history_open(context, named("history.nc"), NULL, &history, NULL) == PENSTOCK_OK);
    define(history, "T");
    check_refused(penstock_history_put(history, "T", field, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                  "not device memory; this history takes memory of the device");
    check_refused(penstock_history_put(history, "T", penstock_buffer_pointer(small), &error), PENSTOCK_INVALID_ARGUMENT,
                  &error, "the memory of variable 'T'");
    penstock_history_abandon(history);
    penstock_buffer_free(small);
    penstock_context_destroy(context);
}

static void options_that_make_no_sense(void) {
    penstock_context* context = made_context(0);
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history* history = NULL;
    penstock_error error = PENSTOCK_ERROR_INIT;
    options.calendar = "maya";
    check_refused(penstock_history_open(context, named("none.nc"), &options, &history, &error),
                  PENSTOCK_INVALID_ARGUMENT, &error, "there is no calendar 'maya'; use standard");
    options.calendar = NULL;
    options.time_units = "moons since the flood";
    check_refused(penstock_history_open(context, named("none.nc"), &options, &history, &error),
                  PENSTOCK_INVALID_ARGUMENT, &error, "give them as 'seconds since 2000-01-01 00:00:00'");
    options.time_units = NULL;
    options.start_time = NAN;
    check_refused(penstock_history_open(context, named("none.nc"), &options, &history, &error),
                  PENSTOCK_INVALID_ARGUMENT, &error, "start_time is no number");
    CHECK(history == NULL && access(named("none.nc"), F_OK) != 0);
    penstock_context_destroy(context);
}

/* By this ranks of MPI see, before there is a file, that they define different ones: see penstock_mpi_same. */
static void ranks_that_disagree(void) {
    penstock_context* context = made_context(0);
    penstock_history* ranks[] = {of_host(context, "ranks.nc", 0, 2), of_host(context, "ranks.nc", 1, 2)};
    penstock_error error = PENSTOCK_ERROR_INIT;
    uint64_t digests[2] = {0, 0};
    for (int i = 0; i < 2; ++i) {
        define(ranks[i], "T");
        CHECK(penstock_history_digest(ranks[i], &digests[i], NULL) == PENSTOCK_OK);
    }
    CHECK(digests[0] == digests[1]);
    define(ranks[1], "U");
    CHECK(penstock_history_digest(ranks[1], &digests[1], NULL) == PENSTOCK_OK && digests[0] != digests[1]);
    for (int i = 0; i < 2; ++i) {
        check_refused(penstock_history_put(ranks[i], "T", field, &error), PENSTOCK_INVALID_ARGUMENT, &error,
                      "several processes write the file, and this one has not begun; begin in all of them first");
        penstock_history_abandon(ranks[i]);
    }
    CHECK(access(named("ranks.nc"), F_OK) != 0);
    penstock_context_destroy(context);
}

/* The limit of the size of files stands for a disk that is full, or a quota. The model ignores each error. */
static void a_disk_full_at_step_7(void) {
    const rlim_t room = 4096 + 6 * (4 * COUNT + 8) + 2 * COUNT;
    struct rlimit old, limit;
    penstock_context* context = made_context(0);
    penstock_history* history = of_host(context, "history.nc", 0, 1);
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    int refused = 0;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = room;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    define(history, "T");
    for (int step = 1; step <= 10; ++step) {
        int code = penstock_history_put(history, "T", field, &error);
        if (code == PENSTOCK_OK) code = penstock_history_end_step(history, step, &error);
        if (code == PENSTOCK_OK) code = penstock_history_wait(history, &error);
        if (code == PENSTOCK_OK) continue;
        ++refused;
        check_refused(code, PENSTOCK_NO_SPACE, &error, "step 7, variable 'T': ");
    }
    CHECK(refused == 4);
    CHECK(penstock_history_describe(history, &facts, NULL) == PENSTOCK_OK && facts.steps_published == 6);
    check_refused(penstock_history_close(history, &error), PENSTOCK_NO_SPACE, &error, "step 7, variable 'T': ");
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    penstock_context_destroy(context);
}

static penstock_history* half(const penstock_context* context, uint32_t process) {
    static const uint64_t whole[] = {2 * COUNT};
    const uint64_t start[] = {process * COUNT};
    penstock_history* history = of_host(context, "history.nc", process, 2);
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    variable.name = "T";
    variable.source_dtype = "float64";
    variable.dimensions = kNames;
    variable.shape = kShape;
    variable.global_shape = whole;
    variable.start = start;
    variable.rank = 1;
    CHECK(penstock_history_define(history, &variable, NULL) == PENSTOCK_OK);
    CHECK(penstock_history_begin(history, NULL) == PENSTOCK_OK);
    return history;
}

/* The third step of process 1 does not fit, that of process 0 does. Nothing was published until then. */
static void steps_that_both_have_written_are_seen_after_a_failure_of_one(void) {
    const rlim_t room = 4096 + 2 * (8 * COUNT + 8) + 8 + 6 * COUNT;
    static float found[4 * COUNT];
    struct rlimit old, limit;
    penstock_context* context = made_context(0);
    penstock_history* both[] = {half(context, 0), half(context, 1)};
    penstock_error error = PENSTOCK_ERROR_INIT;
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = room;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int step = 1; step <= 3; ++step) {
        for (int i = 0; i < COUNT; ++i) field[i] = step;
        for (int i = 0; i < 2; ++i) {
            CHECK(penstock_history_put(both[i], "T", field, NULL) == PENSTOCK_OK);
            CHECK(penstock_history_end_step(both[i], step, NULL) == PENSTOCK_OK);
        }
    }
    CHECK(penstock_history_wait(both[0], NULL) == PENSTOCK_OK);
    check_refused(penstock_history_wait(both[1], &error), PENSTOCK_NO_SPACE, &error, "step 3, variable 'T': ");
    CHECK(penstock_history_publish(both[0], 2, NULL) == PENSTOCK_OK);
    check_refused(penstock_history_publish(both[1], 2, &error), PENSTOCK_NO_SPACE, &error, "step 3, variable 'T': ");
    for (int i = 0; i < 2; ++i) {
        penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
        CHECK(penstock_history_describe(both[i], &facts, NULL) == PENSTOCK_OK && facts.steps_published == 2);
        penstock_history_abandon(both[i]);
    }
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    read_whole(context, "T", found, sizeof(found));
    CHECK(found[0] == 1 && found[2 * COUNT - 1] == 1 && found[2 * COUNT] == 2 && found[4 * COUNT - 1] == 2);
    penstock_context_destroy(context);
}

static void tests(void) {
    calls_that_make_no_sense();
    definitions_that_make_no_sense();
    steps_that_are_dropped();
    memory_of_another_kind_or_size();
    options_that_make_no_sense();
    ranks_that_disagree();
    a_disk_full_at_step_7();
    steps_that_both_have_written_are_seen_after_a_failure_of_one();
}

int main(int count, char** arguments) {
    static const char* const leaves[] = {"history.nc", NULL};
    return run_in_folder(count, arguments, &tests, leaves);
}
