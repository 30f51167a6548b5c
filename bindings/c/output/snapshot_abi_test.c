/* Snapshots through the C ABI: told, written by one call, and refused in words. Python compares the file with what h5py
 * reads; here its size and its first bytes are looked at.
 *
 * Plain C11 with penstock.h only. See abi_check.h, which also explains --control.
 */
#define _POSIX_C_SOURCE 200809L
#include "c/abi_check.h"
#include "penstock_snapshot.h"

enum { COUNT = 1000 };
static const uint64_t kShape[] = {COUNT, 3};

static penstock_snapshot* made_snapshot(const penstock_context* context) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_snapshot* snapshot = NULL;
    penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
    penstock_snapshot_attribute attribute = PENSTOCK_SNAPSHOT_ATTRIBUTE_INIT;
    const uint64_t two = 2, counts[] = {COUNT, 0};
    const char* code = "test";
    if (!CHECK(penstock_snapshot_open(context, named("snapshot.hdf5"), NULL, &snapshot, &error) == PENSTOCK_OK)) {
        fprintf(stderr, "  %s\n", error.message);
        exit(1);
    }
    CHECK(penstock_snapshot_add_group(snapshot, "Header", NULL) == PENSTOCK_OK);
    CHECK(penstock_snapshot_add_link(snapshot, "Gas", "/PartType0", NULL) == PENSTOCK_OK);
    dataset.path = "PartType0/Coordinates";
    dataset.dtype = "float64";
    dataset.shape = kShape;
    dataset.rank = 2;
    CHECK(penstock_snapshot_add_dataset(snapshot, &dataset, NULL) == PENSTOCK_OK);
    attribute.name = "NumPart_Total";
    attribute.dtype = "uint64";
    attribute.values = counts;
    attribute.shape = &two;
    attribute.rank = 1;
    CHECK(penstock_snapshot_set_attribute(snapshot, "Header", &attribute, NULL) == PENSTOCK_OK);
    attribute.name = "Code";
    attribute.dtype = NULL;
    attribute.rank = 0;
    attribute.texts = &code;
    CHECK(penstock_snapshot_set_attribute(snapshot, "/", &attribute, NULL) == PENSTOCK_OK);
    return snapshot;
}

/* By the parser of HDF5, which no HDF5 library helps; through a link to the group. */
static void its_datasets_are_read_and_written_by_name(const penstock_context* context) {
    static double all[COUNT][3];
    double rows[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const uint64_t start[] = {7, 0}, count[] = {2, 3}, step[] = {5, 1};
    penstock_datafile_options options = PENSTOCK_DATAFILE_OPTIONS_INIT;
    penstock_dataset_info info = PENSTOCK_DATASET_INFO_INIT;
    penstock_selection box = PENSTOCK_SELECTION_INIT;
    penstock_request request = PENSTOCK_REQUEST_INIT;
    penstock_datafile* file = NULL;
    penstock_dataset* dataset = NULL;
    options.writable = 1;
    CHECK(penstock_datafile_open(context, named("snapshot.hdf5"), &options, &file, NULL) == PENSTOCK_OK);
    CHECK(penstock_dataset_open(file, "Gas/Coordinates", &dataset, NULL) == PENSTOCK_OK);
    CHECK(penstock_dataset_describe(dataset, &info, NULL) == PENSTOCK_OK);
    CHECK(strcmp(info.dtype, "float64") == 0 && strcmp(info.format, "hdf5") == 0 && info.rank == 2);
    CHECK(info.shape[0] == COUNT && info.shape[1] == 3);
    box.rank = 2;
    box.start = start;
    box.count = count;
    box.step = step;
    request.memory.data = rows;
    request.memory.bytes = sizeof(rows);
    request.memory.kind = PENSTOCK_SYSTEM;
    CHECK(penstock_dataset_write(dataset, &box, &request, NULL, NULL) == PENSTOCK_OK);
    request.memory.data = all;
    request.memory.bytes = sizeof(all);
    CHECK(penstock_dataset_read(dataset, NULL, &request, NULL, NULL) == PENSTOCK_OK);
    CHECK(memcmp(all[7], rows[0], sizeof(rows[0])) == 0 && memcmp(all[12], rows[1], sizeof(rows[1])) == 0);
    penstock_dataset_close(dataset);
    CHECK(penstock_dataset_open(file, "Gas/Coordinate", &dataset, NULL) == PENSTOCK_NOT_FOUND);
    penstock_datafile_close(file);
}

static void a_snapshot_is_written(void) {
    penstock_context* context = made_context(0);
    penstock_snapshot* snapshot = made_snapshot(context);
    penstock_buffer* buffer = device_buffer(context, COUNT * 3 * sizeof(double));
    penstock_snapshot_facts facts = PENSTOCK_SNAPSHOT_FACTS_INIT;
    penstock_snapshot_field field = {"PartType0/Coordinates", NULL, COUNT * 3 * sizeof(double)};
    char room[4096], first[8];
    penstock_text evidence = {room, sizeof(room), 0};
    FILE* file;
    field.data = penstock_buffer_pointer(buffer);
    facts.evidence = &evidence;
    penstock_snapshot_preset preset = PENSTOCK_SNAPSHOT_PRESET_INIT;
    preset.layout = "swift";
    CHECK(penstock_snapshot_use_preset(snapshot, &preset, NULL) == PENSTOCK_OK);
    CHECK(penstock_snapshot_use_stream(snapshot, NULL, NULL) == PENSTOCK_OK);
    CHECK(penstock_snapshot_write(snapshot, &field, 1, &facts, NULL) == PENSTOCK_OK);
    CHECK(facts.data_bytes == field.bytes && facts.file_bytes > field.bytes && strstr(room, "\"path\"") != NULL);
    file = fopen(named("snapshot.hdf5"), "rb");
    CHECK(file != NULL && fread(first, 1, 8, file) == 8 && memcmp(first, "\x89HDF\r\n\x1a\n", 8) == 0);
    CHECK(fseek(file, 0, SEEK_END) == 0 && (uint64_t)ftell(file) == facts.file_bytes && fclose(file) == 0);
    CHECK(penstock_snapshot_write(snapshot, &field, 1, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    its_datasets_are_read_and_written_by_name(context);
    penstock_snapshot_free(snapshot);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
}

static void mistakes_are_refused(void) {
    penstock_context* context = made_context(0);
    penstock_snapshot* snapshot = made_snapshot(context);
    penstock_snapshot* none = NULL;
    penstock_snapshot_options options = PENSTOCK_SNAPSHOT_OPTIONS_INIT;
    penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
    penstock_snapshot_attribute attribute = PENSTOCK_SNAPSHOT_ATTRIBUTE_INIT;
    penstock_snapshot_facts facts = PENSTOCK_SNAPSHOT_FACTS_INIT;
    penstock_snapshot_preset preset = PENSTOCK_SNAPSHOT_PRESET_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    double host[3] = {0, 0, 0};
    const uint64_t huge[] = {UINT64_MAX, UINT64_MAX};
    penstock_snapshot_field field = {"PartType0/Coordinates", NULL, COUNT * 3 * sizeof(double)};
    field.data = host;
    CHECK(penstock_snapshot_open(NULL, named("x"), NULL, &none, NULL) == PENSTOCK_INVALID_ARGUMENT && !none);
    CHECK(penstock_snapshot_open(context, NULL, NULL, &none, NULL) == PENSTOCK_INVALID_ARGUMENT && !none);
    options.memory = 17;
    CHECK(penstock_snapshot_open(context, named("x"), &options, &none, NULL) == PENSTOCK_INVALID_ARGUMENT && !none);
    options.memory = PENSTOCK_PINNED;
    CHECK(penstock_snapshot_open(context, named("x"), &options, &none, NULL) == PENSTOCK_INVALID_ARGUMENT && !none);
    CHECK(penstock_snapshot_add_group(snapshot, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_add_group(NULL, "a", NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_add_link(snapshot, "a", NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_add_dataset(snapshot, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    dataset.path = "x";
    dataset.dtype = "float32";
    dataset.rank = 17;
    CHECK(penstock_snapshot_add_dataset(snapshot, &dataset, NULL) == PENSTOCK_INVALID_ARGUMENT);
    dataset.rank = 1;
    CHECK(penstock_snapshot_add_dataset(snapshot, &dataset, NULL) == PENSTOCK_INVALID_ARGUMENT);
    attribute.name = "x";
    CHECK(penstock_snapshot_set_attribute(snapshot, "/", &attribute, NULL) == PENSTOCK_INVALID_ARGUMENT);
    attribute.dtype = "float64";
    attribute.shape = huge;
    attribute.rank = 2;
    attribute.values = host;
    CHECK(penstock_snapshot_set_attribute(snapshot, "/", &attribute, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_write(snapshot, NULL, 1, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_write(snapshot, &field, 1, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "PartType0/Coordinates") != NULL && strstr(error.message, "not device memory") != NULL);
    facts.struct_size = 3;
    CHECK(penstock_snapshot_write(snapshot, &field, 1, &facts, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_use_preset(snapshot, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_use_preset(snapshot, &preset, NULL) == PENSTOCK_INVALID_ARGUMENT);
    preset.layout = "gadget5";
    CHECK(penstock_snapshot_use_preset(snapshot, &preset, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "use one of gadget4, swift") != NULL);
    penstock_snapshot_free(snapshot);
    penstock_snapshot_free(NULL);
    penstock_context_destroy(context);
}

/* A snapshot of the rows of one of two processes, in memory of the host. */
static penstock_snapshot* part_of_two(const penstock_context* context, uint32_t process) {
    static const uint64_t rows[] = {2, 1};
    penstock_snapshot* snapshot = NULL;
    penstock_snapshot_options options = PENSTOCK_SNAPSHOT_OPTIONS_INIT;
    penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
    options.memory = PENSTOCK_SYSTEM;
    options.process = process;
    options.processes = 2;
    CHECK(penstock_snapshot_open(context, named("snapshot.hdf5"), &options, &snapshot, NULL) == PENSTOCK_OK);
    dataset.path = "x";
    dataset.dtype = "float64";
    dataset.shape = &rows[process];
    dataset.rank = 1;
    dataset.process_rows = rows;
    dataset.process_count = 1;
    CHECK(penstock_snapshot_add_dataset(snapshot, &dataset, NULL) == PENSTOCK_INVALID_ARGUMENT);
    dataset.process_count = 2;
    CHECK(penstock_snapshot_add_dataset(snapshot, &dataset, NULL) == PENSTOCK_OK);
    return snapshot;
}

static void two_processes_write_their_rows(void) {
    penstock_context* context = made_context(0);
    penstock_snapshot* snapshots[] = {part_of_two(context, 0), part_of_two(context, 1)};
    const double values[] = {1, 2, 3};
    const penstock_snapshot_field fields[] = {{"x", values, 16}, {"x", values + 2, 8}};
    uint64_t digests[2] = {0, 0};
    char room[4096] = {0}, all[4096];
    penstock_text place = {room, sizeof(room), 0};
    FILE* file;
    CHECK(penstock_snapshot_digest(snapshots[0], &digests[0], NULL) == PENSTOCK_OK);
    CHECK(penstock_snapshot_digest(snapshots[1], &digests[1], NULL) == PENSTOCK_OK && digests[0] == digests[1]);
    CHECK(penstock_snapshot_commit(snapshots[0], NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_begin(snapshots[1], NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_begin(snapshots[0], NULL, NULL) == PENSTOCK_OK);
    penstock_snapshot_abandon(snapshots[0]);
    CHECK(penstock_snapshot_begin(snapshots[0], NULL, NULL) == PENSTOCK_OK);
    CHECK(penstock_snapshot_place(snapshots[0], &place, NULL) == PENSTOCK_OK && room[0] == '/');
    CHECK(penstock_snapshot_begin(snapshots[1], room, NULL) == PENSTOCK_OK);
    for (int i = 0; i < 2; ++i) CHECK(penstock_snapshot_write(snapshots[i], &fields[i], 1, NULL, NULL) == PENSTOCK_OK);
    CHECK(fopen(named("snapshot.hdf5"), "rb") == NULL);
    for (int i = 2; i-- > 0;) CHECK(penstock_snapshot_commit(snapshots[i], NULL) == PENSTOCK_OK);
    file = fopen(named("snapshot.hdf5"), "rb");
    const size_t bytes = file == NULL ? 0 : fread(all, 1, sizeof(all), file);
    int found = 0;
    for (size_t i = 0; i + sizeof(values) <= bytes; ++i) found += memcmp(all + i, values, sizeof(values)) == 0;
    CHECK(found == 1);
    if (file != NULL) fclose(file);
    for (int i = 0; i < 2; ++i) penstock_snapshot_free(snapshots[i]);
    remove(named("snapshot.hdf5"));
    penstock_context_destroy(context);
}

static void particles_are_put_into_cells(void) {
    penstock_context* context = made_context(0);
    penstock_snapshot* snapshot = made_snapshot(context);
    penstock_snapshot_cells cells = PENSTOCK_SNAPSHOT_CELLS_INIT;
    penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    double at[] = {9, 1, 1, 1, 1, 1, 9, 9, 9};
    const uint64_t shape[] = {3, 3};
    uint64_t order[3] = {7, 7, 7};
    const penstock_snapshot_positions positions = {1, "float64", at, 3};
    CHECK(penstock_snapshot_cell_order(&cells, &positions, order, NULL) == PENSTOCK_INVALID_ARGUMENT);
    for (int i = 0; i < 3; ++i) {
        cells.cells[i] = 2;
        cells.box_size[i] = 10;
    }
    CHECK(penstock_snapshot_cell_order(&cells, &positions, order, NULL) == PENSTOCK_OK);
    CHECK(order[0] == 1 && order[1] == 0 && order[2] == 2);
    CHECK(penstock_snapshot_cell_order(&cells, NULL, order, NULL) == PENSTOCK_INVALID_ARGUMENT);
    dataset.path = "PartType1/Coordinates";
    dataset.dtype = "float64";
    dataset.shape = shape;
    dataset.rank = 2;
    CHECK(penstock_snapshot_add_values(snapshot, &dataset, at, 70, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_add_values(snapshot, &dataset, NULL, 72, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_add_values(snapshot, &dataset, at, sizeof(at), NULL) == PENSTOCK_OK);
    CHECK(penstock_snapshot_add_cells(snapshot, &cells, &positions, 1, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "particle 1 of PartType1 lies in cell 0") != NULL);
    at[0] = 1;
    CHECK(penstock_snapshot_add_cells(snapshot, &cells, &positions, 1, NULL) == PENSTOCK_OK);
    CHECK(penstock_snapshot_add_external_link(snapshot, "other", "other.hdf5", "/x", NULL) == PENSTOCK_OK);
    CHECK(penstock_snapshot_add_external_link(snapshot, "b", NULL, "/x", NULL) == PENSTOCK_INVALID_ARGUMENT);
    penstock_snapshot_free(snapshot);
    penstock_context_destroy(context);
}

/* What MPI_Allreduce does with the sums of two processes. */
static void put_together(penstock_snapshot_cell_sums* one, penstock_snapshot_cell_sums* other) {
    CHECK(one->digest == other->digest && one->total_count == 2 * 8 && one->extreme_count == 8 * 8);
    CHECK(other->total_count == one->total_count && other->extreme_count == one->extreme_count);
    for (uint64_t i = 0; i < one->total_count; ++i) one->totals[i] = other->totals[i] += one->totals[i];
    for (uint64_t i = 0; i < one->extreme_count; ++i) {
        const double most = one->extremes[i] > other->extremes[i] ? one->extremes[i] : other->extremes[i];
        one->extremes[i] = other->extremes[i] = most;
    }
}

static void two_processes_count_their_cells(void) {
    static const uint64_t rows[] = {2, 1};
    static const double at[] = {1, 1, 1, 9, 1, 1, 9, 9, 9};
    penstock_context* context = made_context(0);
    penstock_snapshot* snapshots[] = {part_of_two(context, 0), part_of_two(context, 1)};
    penstock_snapshot_cells cells = {sizeof(cells), {2, 2, 2}, {10, 10, 10}};
    penstock_snapshot_cell_sums sums[] = {PENSTOCK_SNAPSHOT_CELL_SUMS_INIT, PENSTOCK_SNAPSHOT_CELL_SUMS_INIT};
    penstock_snapshot_cell_sums small = PENSTOCK_SNAPSHOT_CELL_SUMS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    small.struct_size = 3;
    for (int i = 0; i < 2; ++i) {
        const penstock_snapshot_positions own = {1, "float64", at + 6 * i, rows[i]};
        const uint64_t shape[] = {rows[i], 3};
        penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
        dataset.path = "PartType1/Coordinates";
        dataset.dtype = "float64";
        dataset.shape = shape;
        dataset.rank = 2;
        dataset.process_rows = rows;
        dataset.process_count = 2;
        CHECK(penstock_snapshot_add_dataset(snapshots[i], &dataset, NULL) == PENSTOCK_OK);
        CHECK(penstock_snapshot_add_cells(snapshots[i], &cells, &own, 1, NULL) == PENSTOCK_INVALID_ARGUMENT);
        CHECK(penstock_snapshot_add_counted_cells(snapshots[i], NULL) == PENSTOCK_INVALID_ARGUMENT);
        CHECK(penstock_snapshot_count_cells(snapshots[i], &cells, &own, 1, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
        CHECK(penstock_snapshot_count_cells(snapshots[i], &cells, &own, 1, &small, NULL) == PENSTOCK_INVALID_ARGUMENT);
        CHECK(penstock_snapshot_count_cells(snapshots[i], &cells, NULL, 1, &sums[i], NULL) ==
              PENSTOCK_INVALID_ARGUMENT);
        CHECK(penstock_snapshot_count_cells(snapshots[i], &cells, &own, 1, &sums[i], NULL) == PENSTOCK_OK);
    }
    put_together(&sums[0], &sums[1]);
    CHECK(sums[0].totals[0] == 1 && sums[0].totals[2 * 4] == 1 && sums[0].totals[2 * 4 + 1] == 1);
    CHECK(penstock_snapshot_add_counted_cells(snapshots[0], NULL) == PENSTOCK_OK);
    sums[1].extremes[8 * 4 + 6] = 1; /* process 1 has particles of cell 4 too */
    CHECK(penstock_snapshot_add_counted_cells(snapshots[1], &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "processes 0 and 1 both have particles of PartType1 in cell 4") != NULL);
    for (int i = 0; i < 2; ++i) penstock_snapshot_free(snapshots[i]);
    penstock_context_destroy(context);
}

static int is_in_file(const void* bytes, size_t count) {
    static char all[1 << 16];
    FILE* file = fopen(named("snapshot.hdf5"), "rb");
    const size_t size = file == NULL ? 0 : fread(all, 1, sizeof(all), file);
    int found = 0;
    for (size_t i = 0; i + count <= size; ++i) found += memcmp(all + i, bytes, count) == 0;
    if (file != NULL) fclose(file);
    return found != 0;
}

static void a_write_puts_particles_into_cells(void) {
    static const double at[] = {9, 1, 1, 1, 1, 1, 9, 9, 9}, sorted[] = {1, 1, 1, 9, 1, 1, 9, 9, 9};
    static const uint64_t ids[] = {10, 11, 12}, sorted_ids[] = {11, 10, 12}, shape[] = {3, 3};
    static const char* const paths[] = {"PartType1/Coordinates", "PartType1/ParticleIDs"};
    const penstock_snapshot_positions positions = {1, "float64", at, 3};
    const penstock_snapshot_field fields[] = {{paths[0], at, sizeof(at)}, {paths[1], ids, sizeof(ids)}};
    penstock_context* context = made_context(0);
    penstock_snapshot* snapshot = NULL;
    penstock_snapshot_cells cells = {sizeof(cells), {2, 2, 2}, {10, 10, 10}};
    penstock_snapshot_cell_sums sums = PENSTOCK_SNAPSHOT_CELL_SUMS_INIT;
    penstock_snapshot_options options = PENSTOCK_SNAPSHOT_OPTIONS_INIT;
    penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
    options.memory = PENSTOCK_SYSTEM;
    CHECK(penstock_snapshot_open(context, named("snapshot.hdf5"), &options, &snapshot, NULL) == PENSTOCK_OK);
    for (uint32_t i = 0; i < 2; ++i) {
        dataset.path = paths[i];
        dataset.dtype = i == 0 ? "float64" : "uint64";
        dataset.shape = shape;
        dataset.rank = 2 - i;
        CHECK(penstock_snapshot_add_dataset(snapshot, &dataset, NULL) == PENSTOCK_OK);
    }
    CHECK(penstock_snapshot_sort_by_cells(snapshot, &cells, NULL, 1, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_sort_and_count(snapshot, &cells, &positions, 1, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_snapshot_sort_and_count(snapshot, &cells, &positions, 1, &sums, NULL) == PENSTOCK_OK);
    CHECK(sums.total_count == 2 * 8 && sums.totals[0] == 1 && sums.totals[2 * 4 + 1] == 1);
    CHECK(penstock_snapshot_sort_by_cells(snapshot, &cells, &positions, 1, NULL) == PENSTOCK_OK);
    CHECK(penstock_snapshot_write(snapshot, fields, 2, NULL, NULL) == PENSTOCK_OK);
    CHECK(is_in_file(sorted, sizeof(sorted)) && is_in_file(sorted_ids, sizeof(sorted_ids)));
    CHECK(!is_in_file(at, sizeof(at)) && !is_in_file(ids, sizeof(ids)));
    penstock_snapshot_free(snapshot);
    remove(named("snapshot.hdf5"));
    penstock_context_destroy(context);
}

static void all_tests(void) {
    a_write_puts_particles_into_cells();
    two_processes_write_their_rows();
    two_processes_count_their_cells();
    particles_are_put_into_cells();
    a_snapshot_is_written();
    mistakes_are_refused();
}

int main(int count, char** arguments) {
    static const char* const leaves[] = {"snapshot.hdf5", NULL};
    return run_in_folder(count, arguments, all_tests, leaves);
}
