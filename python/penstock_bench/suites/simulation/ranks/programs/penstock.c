/* See way.h. A history or a snapshot of Penstock, from memory of the host. */
#include <penstock_mpi.h>
#include <stdlib.h>

#include "way.h"

static penstock_context* context;
static penstock_history* history;
static penstock_snapshot* snapshot;
static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code) grid_fail("penstock", error.message);
}

static void begin_history(const way_file* file) {
    const char* const names[] = {"z", "y", "x"};
    penstock_history_options options = penstock_mpi_history_options(MPI_COMM_WORLD);
    options.memory = PENSTOCK_SYSTEM;
    options.format = "hdf5";
    if (file->is_variant) options.slots = PENSTOCK_NO_SLOTS;
    need(penstock_history_open(context, file->name, &options, &history, &error));
    for (int one = 0; one < file->variables; ++one) {
        char name[16];
        penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
        grid_variable(name, one);
        variable.name = name;
        variable.dtype = "float32";
        variable.dimensions = names;
        variable.shape = file->part.box;
        variable.global_shape = file->part.whole;
        variable.start = file->part.first;
        variable.rank = 3;
        need(penstock_history_define(history, &variable, &error));
    }
    need(penstock_mpi_history_begin(history, MPI_COMM_WORLD, &error));
}

static void begin_snapshot(const way_file* file) {
    penstock_snapshot_options options = penstock_mpi_snapshot_options(MPI_COMM_WORLD);
    uint64_t* rows = calloc((size_t)file->part.ranks, sizeof *rows);
    options.memory = PENSTOCK_SYSTEM;
    need(penstock_snapshot_open(context, file->name, &options, &snapshot, &error));
    penstock_mpi_rows(file->part.box[0], rows, MPI_COMM_WORLD);
    for (int one = 0; one < file->variables; ++one) {
        char name[16];
        penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
        grid_variable(name, one);
        dataset.path = name;
        dataset.dtype = "float32";
        dataset.shape = file->part.box;
        dataset.rank = 3;
        dataset.process_rows = rows;
        dataset.process_count = (uint64_t)file->part.ranks;
        need(penstock_snapshot_add_dataset(snapshot, &dataset, &error));
    }
    free(rows);
}

void way_start(void) {
    penstock_context_options options = PENSTOCK_CONTEXT_OPTIONS_INIT;
    options.device = "host";
    need(penstock_context_create(&options, &context, &error));
}

void way_stop(void) { penstock_context_destroy(context); }

void way_begin(const way_file* file) {
    if (file->steps) {
        begin_history(file);
    } else {
        begin_snapshot(file);
    }
}

static void write_snapshot(const way_file* file, const float* fields) {
    const uint64_t cells = grid_cells(&file->part);
    penstock_snapshot_field* all = calloc((size_t)file->variables, sizeof *all);
    char(*names)[16] = calloc((size_t)file->variables, sizeof *names);
    for (int one = 0; one < file->variables; ++one) {
        grid_variable(names[one], one);
        all[one].dataset = names[one];
        all[one].data = fields + (uint64_t)one * cells;
        all[one].bytes = cells * sizeof(float);
    }
    need(penstock_mpi_snapshot_write(snapshot, all, (uint64_t)file->variables, MPI_COMM_WORLD, &error));
    free(names);
    free(all);
}

void way_step(const way_file* file, int step, const float* fields) {
    const uint64_t cells = grid_cells(&file->part);
    if (!file->steps) {
        write_snapshot(file, fields);
        return;
    }
    for (int one = 0; one < file->variables; ++one) {
        char name[16];
        grid_variable(name, one);
        need(penstock_history_put(history, name, fields + (uint64_t)one * cells, &error));
    }
    need(penstock_mpi_history_end_step(history, step + 1.0, MPI_COMM_WORLD, &error));
}

void way_end(const way_file* file) {
    if (file->steps) need(penstock_mpi_history_close(history, MPI_COMM_WORLD, &error));
    if (!file->steps) penstock_snapshot_free(snapshot);
}
