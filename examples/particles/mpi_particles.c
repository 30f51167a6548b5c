/* One snapshot of all ranks of an MPI program, from C: each rank writes its particles.
 *
 *     mpicc $(penstock config --cflags) mpi_particles.c $(penstock config --libs) -o mpi_particles
 *     mpirun -n 4 ./mpi_particles snapshot.hdf5          one file
 *     mpirun -n 4 ./mpi_particles snapshot.hdf5 each     snapshot.0.hdf5, ..., and snapshot.hdf5, which shows them
 *
 * Rank 1 has no particles. Each rank has four cells of the box, and its particles lie in any order: the snapshot puts
 * them into that of cells. Readers of SWIFT load a part of the box by the group Cells.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "penstock_mpi.h"

enum { PER_RANK = 1000, CELLS_PER_RANK = 4 };

static penstock_error error = PENSTOCK_ERROR_INIT;

static void need(int code) {
    if (code == PENSTOCK_OK) return;
    fprintf(stderr, "%s\n", error.message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int count, char** arguments) {
    static double positions[PER_RANK][3];
    static uint64_t ids[PER_RANK];
    penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
    penstock_snapshot_preset preset = PENSTOCK_SNAPSHOT_PRESET_INIT;
    penstock_context* context = NULL;
    penstock_snapshot* snapshot = NULL;
    int rank = 0, ranks = 1;

    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const uint64_t own = rank == 1 ? 0 : (uint64_t)(PER_RANK - rank);
    uint64_t* rows = malloc(sizeof(uint64_t) * (size_t)ranks);
    if (rows == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    penstock_mpi_rows(own, rows, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < own; ++i) {
        ids[i] = (uint64_t)rank * PER_RANK + (own - 1 - i);
        for (int k = 0; k < 3; ++k) positions[i][k] = (double)ids[i] + 0.25 * k;
    }

    need(penstock_context_create(NULL, &context, &error));
    penstock_snapshot_options options = penstock_mpi_snapshot_options(MPI_COMM_WORLD);
    options.memory = PENSTOCK_SYSTEM; /* the fields of this example are of the host */
    options.file_each = options.virtual_file = count > 2 && strcmp(arguments[2], "each") == 0;
    need(penstock_snapshot_open(context, count > 1 ? arguments[1] : "snapshot.hdf5", &options, &snapshot, &error));
    const uint64_t shape[] = {own, 3};
    dataset.shape = shape;
    dataset.process_rows = rows;
    dataset.process_count = (uint64_t)ranks;
    dataset.path = "PartType1/Coordinates";
    dataset.dtype = "float64";
    dataset.rank = 2;
    need(penstock_snapshot_add_dataset(snapshot, &dataset, &error));
    dataset.path = "PartType1/ParticleIDs";
    dataset.dtype = "uint64";
    dataset.rank = 1;
    need(penstock_snapshot_add_dataset(snapshot, &dataset, &error));
    const penstock_snapshot_positions own_positions = {1, "float64", positions, own};
    penstock_snapshot_cells cells = {sizeof(cells), {(uint64_t)ranks * CELLS_PER_RANK, 1, 1}, {0}};
    for (int k = 0; k < 3; ++k) cells.box_size[k] = PER_RANK * (double)ranks;
    need(penstock_mpi_snapshot_sort_by_cells(snapshot, &cells, &own_positions, 1, MPI_COMM_WORLD, &error));
    preset.layout = "gadget4";
    preset.box_size[0] = PER_RANK * (double)ranks;
    need(penstock_snapshot_use_preset(snapshot, &preset, &error));
    const penstock_snapshot_field fields[] = {{"PartType1/Coordinates", positions, own * sizeof(positions[0])},
                                              {"PartType1/ParticleIDs", ids, own * sizeof(ids[0])}};
    need(penstock_mpi_snapshot_write(snapshot, fields, 2, MPI_COMM_WORLD, &error));
    penstock_snapshot_free(snapshot);
    penstock_context_destroy(context);
    free(rows);
    MPI_Finalize();
    return 0;
}
