/* Two output intervals of one model, from C: two histories, each with its own file and times.
 *
 *     cc $(penstock config --cflags) intervals.c $(penstock config --libs) -o intervals-c
 *     ./intervals-c often_c.nc mean_c.nc
 *
 * The first file has the field of each step of the model, the second its mean over six steps. The model puts the field
 * into both; neither history waits for the other.
 */
#include <stdio.h>
#include <stdlib.h>

#include "penstock_history.h"

enum { NX = 6, NY = 5, STEPS = 12, OF_MEAN = 6 };

static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

static penstock_history* opened(const penstock_context* context, const char* name, int statistic) {
    static const char* const names[] = {"y", "x"};
    static const uint64_t shape[] = {NY, NX};
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    penstock_history* history = NULL;
    options.time_units = "seconds since 2000-01-01 00:00:00";
    options.memory = PENSTOCK_SYSTEM; /* the field of this example is of the host */
    need(penstock_history_open(context, name, &options, &history, &error));
    variable.name = "T";
    variable.dtype = "float32";
    variable.source_dtype = "float64";
    variable.dimensions = names;
    variable.shape = shape;
    variable.rank = 2;
    variable.statistic = statistic;
    need(penstock_history_define(history, &variable, &error));
    return history;
}

int main(int count, char** arguments) {
    static double field[NY][NX];
    penstock_context* context = NULL;
    need(penstock_context_create(NULL, &context, &error));
    penstock_history* often = opened(context, count > 1 ? arguments[1] : "often_c.nc", PENSTOCK_NO_STATISTIC);
    penstock_history* mean = opened(context, count > 2 ? arguments[2] : "mean_c.nc", PENSTOCK_MEAN);
    for (int step = 1; step <= STEPS; ++step) {
        for (int j = 0; j < NY; ++j) {
            for (int i = 0; i < NX; ++i) field[j][i] = 100 * step + 10 * j + i;
        }
        need(penstock_history_put(often, "T", field, &error));
        need(penstock_history_put(mean, "T", field, &error));
        need(penstock_history_end_step(often, 60.0 * step, &error));
        if (step % OF_MEAN == 0) need(penstock_history_end_step(mean, 60.0 * step, &error));
    }
    need(penstock_history_close(often, &error));
    need(penstock_history_close(mean, &error));
    penstock_context_destroy(context);
    return 0;
}
