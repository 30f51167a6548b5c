/* History output of a running model, from C: a file that ncdump and xarray read, also while the model runs.
 *
 *     cc $(penstock config --cflags) history.c $(penstock config --libs) -o history-c
 *     ./history-c history_c.nc
 *
 * The field has a halo of one point on each side and is in double precision. The file has the inner points in single,
 * and the mean over two steps of the model. On a GPU, leave options.memory as it is and pass a pointer to its memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "penstock_history.h"

enum { NX = 60, NY = 40, STEPS = 6 };

static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

static void warm(double field[NY + 2][NX + 2]) {
    static double next[NY + 2][NX + 2];
    field[NY / 2][NX / 2] = 300;
    for (int j = 1; j <= NY; ++j) {
        for (int i = 1; i <= NX; ++i) {
            next[j][i] = field[j][i] + 0.2 * (field[j - 1][i] + field[j + 1][i] + field[j][i - 1] + field[j][i + 1] -
                                              4 * field[j][i]);
        }
    }
    for (int j = 1; j <= NY; ++j) {
        for (int i = 1; i <= NX; ++i) field[j][i] = next[j][i];
    }
}

int main(int count, char** arguments) {
    static double field[NY + 2][NX + 2];
    const char* const names[] = {"y", "x"};
    const uint64_t shape[] = {NY, NX}, halo[] = {1, 1};
    penstock_context* context = NULL;
    penstock_history* history = NULL;
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    penstock_attribute units = PENSTOCK_ATTRIBUTE_INIT;
    const char* name = count > 1 ? arguments[1] : "history_c.nc";

    options.time_units = "seconds since 2000-01-01 00:00:00";
    options.memory = PENSTOCK_SYSTEM;
    need(penstock_context_create(NULL, &context, &error));
    need(penstock_history_open(context, name, &options, &history, &error));
    variable.name = "T";
    variable.dtype = "float32";
    variable.source_dtype = "float64";
    variable.dimensions = names;
    variable.shape = shape;
    variable.halo_low = variable.halo_high = halo;
    variable.rank = 2;
    variable.statistic = PENSTOCK_MEAN;
    need(penstock_history_define(history, &variable, &error));
    units.name = "units";
    units.text = "K";
    need(penstock_history_set_attribute(history, "T", &units, &error));

    for (int j = 0; j < NY + 2; ++j) {
        for (int i = 0; i < NX + 2; ++i) field[j][i] = 280;
    }
    for (int step = 1; step <= STEPS; ++step) {
        warm(field);
        need(penstock_history_put(history, "T", field, &error));
        if (step % 2 == 0) need(penstock_history_end_step(history, 10.0 * step, &error)); /* returns at once */
    }
    need(penstock_history_wait(history, &error));
    need(penstock_history_describe(history, &facts, &error));
    printf("%llu steps of %llu bytes\n", (unsigned long long)facts.steps_published,
           (unsigned long long)facts.step_bytes);
    need(penstock_history_close(history, &error));
    penstock_context_destroy(context);
    return 0;
}
