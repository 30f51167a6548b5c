/* The file of one process of SCALE-RM, from C: its dimensions, attributes and name, so that its readers take it.
 *
 *     gcc $(penstock config --cflags) scale.c $(penstock config --libs) -o scale-c
 *     for process in 0 1; do ./scale-c $process; done
 *
 * Two processes share 12 cells along x. Each writes history.pe00000N.nc: temperature at centres of cells, and vertical
 * wind at their faces. Python opens both as one by the name history.pe######.nc, and so does xarray.
 */
#include <penstock_history.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { NX = 12, NY = 5, NZ = 4, HALO = 2, PROCESSES = 2, OWN = NX / PROCESSES, STEPS = 3 };

/* Fields of the model have a halo along x and y. */
static double temperature[NY + 2 * HALO][OWN + 2 * HALO][NZ], wind[NY + 2 * HALO][OWN + 2 * HALO][NZ + 1];
static double longitude[NY][OWN], latitude[NY][OWN];

static void need(int code, const penstock_error* error) {
    if (code == 0) return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static void define(penstock_history* history, const char* name, const char* level, uint64_t levels) {
    const char* dimensions[] = {"y", "x", level};
    const uint64_t shape[] = {NY, OWN, levels}, halo[] = {HALO, HALO, 0};
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    variable.name = name;
    variable.source_dtype = "float64";
    variable.dimensions = dimensions;
    variable.shape = shape;
    variable.halo_low = variable.halo_high = halo;
    variable.rank = 3;
    need(penstock_history_define(history, &variable, &error), &error);
}

static void define_place(penstock_history* history, const char* name, const double* values) {
    const char* dimensions[] = {"y", "x"};
    const uint64_t shape[] = {NY, OWN};
    penstock_history_constant constant = PENSTOCK_HISTORY_CONSTANT_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    constant.name = name;
    constant.dimensions = dimensions;
    constant.shape = shape;
    constant.values = values;
    constant.rank = 2;
    constant.bytes = sizeof(longitude);
    need(penstock_history_define_constant(history, &constant, &error), &error);
}

static void use_layout(penstock_history* history, uint32_t process) {
    static double x[NX + 2 * HALO + 1], y[NY + 2 * HALO + 1], z[NZ + 2 * HALO + 1];
    penstock_history_preset preset = PENSTOCK_HISTORY_PRESET_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    for (int i = 0; i <= NX + 2 * HALO; ++i) x[i] = 500.0 * (i - HALO);
    for (int i = 0; i <= NY + 2 * HALO; ++i) y[i] = 500.0 * (i - HALO);
    for (int i = 0; i <= NZ + 2 * HALO; ++i) z[i] = 100.0 * (i - HALO);
    preset.title = "two processes";
    preset.source = "scale.c";
    preset.process = process;
    preset.x = (penstock_history_grid_axis){x, NX + 2 * HALO + 1, HALO, NULL, NULL, PROCESSES, 0};
    preset.y = (penstock_history_grid_axis){y, NY + 2 * HALO + 1, HALO, NULL, NULL, 1, 1};
    preset.z = (penstock_history_grid_axis){z, NZ + 2 * HALO + 1, HALO, NULL, NULL, 1, 0};
    need(penstock_history_use_preset(history, &preset, &error), &error);
}

static void compute(int step, int process) {
    for (int j = 0; j < NY + 2 * HALO; ++j)
        for (int i = 0; i < OWN + 2 * HALO; ++i)
            for (int k = 0; k <= NZ; ++k) {
                const double value = 1000 * step + 100 * (j - HALO) + 10 * (OWN * process + i - HALO) + k;
                wind[j][i][k] = -value;
                if (k < NZ) temperature[j][i][k] = value;
            }
}

int main(int count, char** arguments) {
    const int process = count > 1 ? atoi(arguments[1]) : 0;
    penstock_history_options options = PENSTOCK_HISTORY_OPTIONS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = NULL;
    penstock_history* history = NULL;
    char name[64];
    if (process < 0 || process >= PROCESSES) return 2;
    snprintf(name, sizeof(name), "history.pe%06d.nc", process);
    options.memory = PENSTOCK_SYSTEM; /* the fields are of the host */
    options.time_units = "seconds since 2000-01-01 00:00:00";
    need(penstock_context_create(NULL, &context, &error), &error);
    need(penstock_history_open(context, name, &options, &history, &error), &error);
    for (int j = 0; j < NY; ++j)
        for (int i = 0; i < OWN; ++i) {
            longitude[j][i] = 135 + 0.005 * (OWN * process + i);
            latitude[j][i] = 35 + 0.005 * j;
        }
    define(history, "T", "z", NZ);
    define(history, "W", "zh", NZ + 1);
    define_place(history, "lon", longitude[0]);
    define_place(history, "lat", latitude[0]);
    use_layout(history, (uint32_t)process);
    for (int step = 1; step <= STEPS; ++step) {
        compute(step, process);
        need(penstock_history_put(history, "T", temperature, &error), &error);
        need(penstock_history_put(history, "W", wind, &error), &error);
        need(penstock_history_end_step(history, 60.0 * step, &error), &error);
    }
    need(penstock_history_close(history, &error), &error);
    penstock_context_destroy(context);
    return 0;
}
