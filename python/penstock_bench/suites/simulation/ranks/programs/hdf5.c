/* See way.h. Parallel HDF5, with the layout that Penstock gives the file: of a history one chunk a variable and step,
 * of a snapshot elements one behind the other; what is large begins at a page. No fill values are written, and metadata
 * are read and written by collective calls, as the library's own advice says. */
#include <hdf5.h>
#include <stdlib.h>

#include "way.h"

enum { RANK = 4, TIMES = 1024 };
static hid_t file_id, transfer, *datasets, times;

static hid_t need(hid_t id, const char* what) {
    if (id < 0) grid_fail("HDF5", what);
    return id;
}

static hid_t new_dataset(const char* name, int rank, const hsize_t* shape, const hsize_t* chunk) {
    hsize_t most[RANK] = {H5S_UNLIMITED, 0, 0, 0};
    for (int axis = 1; axis < rank; ++axis) most[axis] = shape[axis];
    const hid_t space = need(H5Screate_simple(rank, shape, chunk ? most : NULL), "a dataspace");
    const hid_t how = need(H5Pcreate(H5P_DATASET_CREATE), "properties of a dataset");
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    if (chunk) H5Pset_chunk(how, rank, chunk);
    const hid_t type = chunk && rank == 1 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE;
    const hid_t made = need(H5Dcreate2(file_id, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT), name);
    H5Pclose(how);
    H5Sclose(space);
    return made;
}

void way_start(void) { need(H5open(), "begin"); }
void way_stop(void) { H5close(); }

void way_begin(const way_file* file) {
    const hid_t access = need(H5Pcreate(H5P_FILE_ACCESS), "properties of a file");
    need(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "access by MPI");
    H5Pset_all_coll_metadata_ops(access, 1);
    H5Pset_coll_metadata_write(access, 1);
    H5Pset_alignment(access, 65536, 4096);
    file_id = need(H5Fcreate(file->name, H5F_ACC_TRUNC, H5P_DEFAULT, access), file->name);
    H5Pclose(access);
    transfer = need(H5Pcreate(H5P_DATASET_XFER), "properties of a transfer");
    H5Pset_dxpl_mpio(transfer, file->is_variant ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
    datasets = calloc((size_t)file->variables, sizeof *datasets);
    const hsize_t of_step[RANK] = {1, file->part.whole[0], file->part.whole[1], file->part.whole[2]};
    const hsize_t no_step[RANK] = {0, file->part.whole[0], file->part.whole[1], file->part.whole[2]};
    for (int one = 0; one < file->variables; ++one) {
        char name[16];
        grid_variable(name, one);
        datasets[one] = file->steps ? new_dataset(name, 4, no_step, of_step) : new_dataset(name, 3, of_step + 1, NULL);
    }
    const hsize_t none = 0, chunk = TIMES;
    if (file->steps) times = new_dataset("time", 1, &none, &chunk);
}

/* A box of the file, from memory that holds it alone. */
typedef struct {
    int rank;
    const hsize_t *first, *box;
} place_in_file;

static void write_box(hid_t dataset, const place_in_file* part, const float* values) {
    const hid_t memory = need(H5Screate_simple(part->rank, part->box, NULL), "a dataspace");
    const hid_t place = need(H5Dget_space(dataset), "the space of a dataset");
    H5Sselect_hyperslab(place, H5S_SELECT_SET, part->first, NULL, part->box, NULL);
    need(H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, place, transfer, values), "write a box");
    H5Sclose(place);
    H5Sclose(memory);
}

static void write_time(const way_file* file, int step) {
    const hsize_t length = (hsize_t)step + 1, place = (hsize_t)step, one = 1;
    const double time = step + 1.0;
    need(H5Dset_extent(times, &length), "a longer time");
    const hid_t memory = need(H5Screate_simple(1, &one, NULL), "a dataspace");
    const hid_t chosen = need(H5Dget_space(times), "the space of the time");
    H5Sselect_hyperslab(chosen, H5S_SELECT_SET, &place, NULL, &one, NULL);
    if (file->part.rank != 0) H5Sselect_none(memory);
    if (file->part.rank != 0) H5Sselect_none(chosen);
    need(H5Dwrite(times, H5T_NATIVE_DOUBLE, memory, chosen, transfer, &time), "write the time");
    H5Sclose(chosen);
    H5Sclose(memory);
}

void way_step(const way_file* file, int step, const float* fields) {
    const hsize_t length[RANK] = {(hsize_t)step + 1, file->part.whole[0], file->part.whole[1], file->part.whole[2]};
    const hsize_t first[RANK] = {(hsize_t)step, file->part.first[0], file->part.first[1], file->part.first[2]};
    const hsize_t box[RANK] = {1, file->part.box[0], file->part.box[1], file->part.box[2]};
    const place_in_file part = file->steps ? (place_in_file){4, first, box} : (place_in_file){3, first + 1, box + 1};
    for (int one = 0; one < file->variables; ++one) {
        if (file->steps) need(H5Dset_extent(datasets[one], length), "a longer variable");
        write_box(datasets[one], &part, fields + (uint64_t)one * grid_cells(&file->part));
    }
    if (file->steps) write_time(file, step);
}

void way_end(const way_file* file) {
    for (int one = 0; one < file->variables; ++one) H5Dclose(datasets[one]);
    if (file->steps) H5Dclose(times);
    H5Pclose(transfer);
    need(H5Fclose(file_id), "close the file");
    free(datasets);
}
