/* Ranks that add the cells of SWIFT to a snapshot and write it whatever they are told: wrong_cells NAME MISTAKE. The
 * last rank makes the mistake; all of them make "twice" and "again". Each rank prints every error that it gets, and
 * that it came to its end.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "penstock_mpi.h"

enum { PARTICLES = 5, MOST_RANKS = 16 };

static penstock_error error = PENSTOCK_ERROR_INIT;
static int rank, ranks;
static const char* mistake = "none";

static int does(const char* what) { return rank == ranks - 1 && strcmp(mistake, what) == 0; }

/* In one write, so that lines of ranks are not mixed. */
static void tell(const char* what, const char* text) {
    char line[4096];
    const int bytes = snprintf(line, sizeof(line), "rank %d %s: %s\n", rank, what, text);
    if (write(2, line, (size_t)bytes) != bytes) _exit(3);
}

/* Where the file is begun and has no name yet, "taken" gives the name to another one. */
static const char* name = NULL;
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    if (count == PENSTOCK_MPI_PLACE && rank == 0 && strcmp(mistake, "taken") == 0) {
        FILE* const file = fopen(name, "w");
        if (file == NULL || fclose(file) != 0) _exit(3);
    }
    return PMPI_Bcast(buffer, count, type, root, comm);
}

static void looked(const char* what, int code) {
    if (code != PENSTOCK_OK) tell(what, error.message);
}

/* Each rank has a cell, and the last one may be wrong. */
static void place(double* at) {
    for (int i = 0; i < PARTICLES; ++i) {
        at[3 * i] = 10.0 * rank + i;
        at[3 * i + 1] = 1;
        at[3 * i + 2] = 2;
    }
    if (does("nan")) at[3 * 2 + 1] = NAN;
    if (does("infinite")) at[3 * 4] = INFINITY;
    if (does("outside")) at[3 * 4] = 1e6;
    if (does("outside")) at[3 * 4 + 1] = -3;
    if (does("shared")) at[0] = 10.0 * (rank - 1) + 9;
    if (does("unsorted")) at[3 * 1] = 0;
}

static void add_dataset(penstock_snapshot* snapshot) {
    static uint64_t rows[MOST_RANKS];
    const uint64_t shape[] = {PARTICLES, 3};
    penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
    penstock_mpi_rows(PARTICLES, rows, MPI_COMM_WORLD);
    dataset.path = "PartType1/Coordinates";
    dataset.dtype = "float64";
    dataset.shape = shape;
    dataset.rank = 2;
    dataset.process_rows = rows;
    dataset.process_count = (uint64_t)ranks;
    looked("add", penstock_snapshot_add_dataset(snapshot, &dataset, &error));
}

static void add_cells(penstock_snapshot* snapshot, const double* at) {
    penstock_snapshot_cells cells = {sizeof(cells), {(uint64_t)ranks, 1, 1}, {10.0 * ranks, 10, 10}};
    penstock_snapshot_positions own[] = {{1, "float64", at, PARTICLES}, {1, "float64", at, PARTICLES}};
    uint64_t count = strcmp(mistake, "twice") == 0 ? 2 : 1;
    if (does("fewer")) own[0].particles = PARTICLES - 1;
    if (does("more")) own[0].particles = PARTICLES + 1;
    if (does("type")) own[0].type = 3;
    if (does("large type")) own[0].type = UINT64_MAX;
    if (does("types")) count = 0;
    if (does("dtype")) own[0].dtype = "int32";
    if (does("null")) own[0].data = NULL;
    if (does("grid")) cells.cells[1] = 2;
    if (does("box")) cells.box_size[0] += 1;
    if (does("no box")) cells.box_size[2] = NAN;
    if (does("no cells")) cells.cells[2] = 0;
    if (does("many cells")) cells.cells[0] = cells.cells[1] = cells.cells[2] = 4096;
    if (does("sorts")) { /* no mistake */
        looked("cells", penstock_mpi_snapshot_sort_by_cells(snapshot, &cells, own, count, MPI_COMM_WORLD, &error));
        return;
    }
    looked("cells", penstock_mpi_snapshot_add_cells(does("handle") ? NULL : snapshot, does("no grid") ? NULL : &cells,
                                                    own, count, MPI_COMM_WORLD, &error));
}

int main(int count, char** arguments) {
    penstock_context_options with = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_context* context = NULL;
    penstock_snapshot* snapshot = NULL;
    double at[3 * (PARTICLES + 1)] = {0};
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count > 2) mistake = arguments[2];
    with.device = "host";
    looked("context", penstock_context_create(&with, &context, &error));
    penstock_snapshot_options options = penstock_mpi_snapshot_options(MPI_COMM_WORLD);
    options.memory = PENSTOCK_SYSTEM;
    name = arguments[1];
    options.refuse_existing = strcmp(mistake, "taken") == 0;
    looked("open", penstock_snapshot_open(context, arguments[1], &options, &snapshot, &error));
    add_dataset(snapshot);
    place(at);
    add_cells(snapshot, at);
    if (strcmp(mistake, "again") == 0) add_cells(snapshot, at);
    const penstock_snapshot_field field = {"PartType1/Coordinates", at, 3 * PARTICLES * sizeof(double)};
    looked("write", penstock_mpi_snapshot_write(snapshot, &field, 1, MPI_COMM_WORLD, &error));
    if (strcmp(mistake, "taken") == 0) {
        if (rank == 0 && unlink(name) != 0) _exit(3);
        mistake = "none";
        looked("second write", penstock_mpi_snapshot_write(snapshot, &field, 1, MPI_COMM_WORLD, &error));
    }
    penstock_snapshot_free(snapshot);
    penstock_context_destroy(context);
    tell("end of the model", "reached");
    MPI_Finalize();
    return 0;
}
