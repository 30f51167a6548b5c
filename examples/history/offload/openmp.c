/* History output of a model whose fields OpenMP holds on a GPU, from C.
 *
 *     nvc -mp=gpu $(penstock config --cflags) openmp.c $(penstock config --libs) -o openmp-c
 *     gcc -fopenmp $(penstock config --cflags) openmp.c $(penstock config --libs) -o openmp-c
 *     ./openmp-c openmp_c.nc
 *
 * In `use_device_ptr` the pointer leads to the copy of its array on the device. The values do not pass through the
 * array of the host. A compiler without a GPU maps nothing: then the pointer stays the host's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "penstock_history.h"

enum { NX = 60, NY = 40, STEPS = 6, ROW = NX + 2, ALL = ROW * (NY + 2), INNER = NX * NY };

static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

/* Where that address leads: to a GPU, or to the host, where the compiler made code for no GPU. */
static int memory_of(const penstock_context* context, const void* address) {
    penstock_pointer found = PENSTOCK_POINTER_INIT;
    need(penstock_memory_kind(context, address, &found, &error));
    return found.kind == PENSTOCK_DEVICE || found.kind == PENSTOCK_MANAGED ? PENSTOCK_DEVICE : PENSTOCK_SYSTEM;
}

static penstock_history* opened(const penstock_context* context, const char* name, int memory) {
    static const char* const names[] = {"y", "x"};
    static const uint64_t shape[] = {NY, NX};
    static const uint64_t halo[] = {1, 1};
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    penstock_history* history = NULL;
    options.time_units = "seconds since 2000-01-01 00:00:00";
    options.memory = memory;
    need(penstock_history_open(context, name, &options, &history, &error));
    variable.name = "change";
    variable.dtype = "float64";
    variable.source_dtype = "float64";
    variable.dimensions = names;
    variable.shape = shape;
    variable.rank = 2;
    need(penstock_history_define(history, &variable, &error));
    variable.name = "T";
    variable.halo_low = halo;
    variable.halo_high = halo;
    need(penstock_history_define(history, &variable, &error));
    return history;
}

int main(int count, char** arguments) {
    double* field = malloc(sizeof(double) * ALL);
    double* change = malloc(sizeof(double) * INNER);
    penstock_context* context = NULL;
    penstock_history* history = NULL;
    if (field == NULL || change == NULL) return 1;
    for (int i = 0; i < ALL; ++i) field[i] = 280;
    need(penstock_context_create(NULL, &context, &error));
#pragma omp target data map(to : field[0 : ALL]) map(alloc : change[0 : INNER])
    {
#pragma omp target data use_device_ptr(field)
        history = opened(context, count > 1 ? arguments[1] : "openmp_c.nc", memory_of(context, field));
        for (int step = 1; step <= STEPS; ++step) {
#pragma omp target teams distribute parallel for
            for (int i = 0; i < INNER; ++i) {
                const double* at = field + (i / NX + 1) * ROW + i % NX + 1;
                change[i] = 0.125 * (at[-1] + at[1] + at[-ROW] + at[ROW] - 4 * at[0]);
            }
#pragma omp target teams distribute parallel for
            for (int i = 0; i < INNER; ++i) {
                const int is_warmed = i == (NY / 2 - 1) * NX + NX / 2 - 1;
                field[(i / NX + 1) * ROW + i % NX + 1] += change[i] + 8 * is_warmed;
            }
#pragma omp target data use_device_ptr(field, change)
            {
                need(penstock_history_put(history, "T", field, &error));
                need(penstock_history_put(history, "change", change, &error));
            }
            need(penstock_history_end_step(history, 10.0 * step, &error));
        }
    }
    need(penstock_history_close(history, &error));
    penstock_context_destroy(context);
    free(change);
    free(field);
    return 0;
}
