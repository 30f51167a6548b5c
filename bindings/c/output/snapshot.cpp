// The functions of penstock_snapshot.h.
#include "penstock/snapshot.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "c/output/attributes.hpp"
#include "c/boundary.hpp"
#include "c/handles.hpp"
#include "penstock_snapshot.h"
#include "c/values.hpp"

using penstock::c::copied;
using penstock::c::free_handle;
using penstock::c::give_handle;
using penstock::c::give_text;
using penstock::c::guarded;
using penstock::c::lengths;
using penstock::c::opened;
using penstock::c::required;
using penstock::c::snapshot_attribute;

namespace {

// Of version 4 of the interface.
constexpr std::uint64_t kFirstSnapshotOptions = offsetof(penstock_snapshot_options, process);
constexpr std::uint64_t kFirstSnapshotDataset = offsetof(penstock_snapshot_dataset, process_rows);

penstock::SnapshotOptions snapshot_options(const penstock_snapshot_options* given) {
    const auto wanted = copied<penstock_snapshot_options, kFirstSnapshotOptions>("penstock_snapshot_options", given);
    penstock::SnapshotOptions options;
    options.memory = penstock::c::checked_kind(wanted.memory);
    options.durable = wanted.durable != 0;
    options.replace = wanted.refuse_existing == 0;
    options.transfer.path = penstock::c::path_named(wanted.path);
    options.process = wanted.process;
    options.processes = std::max<std::uint32_t>(wanted.processes, 1);
    options.file_each = wanted.file_each != 0;
    options.virtual_file = wanted.virtual_file != 0;
    return options;
}

penstock::SnapshotDataset snapshot_dataset(const penstock_snapshot_dataset* given) {
    const auto wanted = copied<penstock_snapshot_dataset, kFirstSnapshotDataset>(
        "penstock_snapshot_dataset", &required("penstock_snapshot_dataset", given));
    penstock::SnapshotDataset dataset{&required("the path of the dataset", wanted.path),
                                      &required("the type of the dataset", wanted.dtype),
                                      lengths("add dataset", wanted.shape, wanted.rank)};
    if (wanted.process_rows != nullptr) {
        dataset.process_rows.assign(wanted.process_rows, wanted.process_rows + wanted.process_count);
    }
    dataset.chunk_rows = wanted.chunk_rows;
    dataset.has_checksums = wanted.has_checksums != 0;
    return dataset;
}

std::vector<penstock::SnapshotField> snapshot_fields(const penstock_snapshot_field* given, std::uint64_t count) {
    if (count != 0) required("the fields", given);
    std::vector<penstock::SnapshotField> fields;
    for (std::uint64_t i = 0; i < count; ++i) {
        fields.push_back({&required("the dataset of a field", given[i].dataset), given[i].data, given[i].bytes});
    }
    return fields;
}

penstock::SnapshotCells snapshot_cells(const penstock_snapshot_cells* given) {
    const auto wanted = copied("penstock_snapshot_cells", &required("penstock_snapshot_cells", given));
    penstock::SnapshotCells cells;
    std::copy(std::begin(wanted.cells), std::end(wanted.cells), cells.cells.begin());
    std::copy(std::begin(wanted.box_size), std::end(wanted.box_size), cells.box_size.begin());
    return cells;
}

penstock::SnapshotPositions snapshot_positions(const penstock_snapshot_positions& given) {
    return {static_cast<std::uint32_t>(std::min<std::uint64_t>(given.type, 0xffffffff)),
            &required("the type of the positions", given.dtype), given.data, given.particles};
}

std::vector<penstock::SnapshotPositions> all_positions(const penstock_snapshot_positions* given, std::uint64_t count) {
    if (count != 0) required("the positions", given);
    std::vector<penstock::SnapshotPositions> all;
    for (std::uint64_t i = 0; i < count; ++i) all.push_back(snapshot_positions(given[i]));
    return all;
}

std::string text_or_none(const char* text) { return text == nullptr ? "" : text; }

penstock::SnapshotPreset snapshot_preset(const penstock_snapshot_preset* given) {
    const auto wanted = copied("penstock_snapshot_preset", &required("penstock_snapshot_preset", given));
    penstock::SnapshotPreset preset;
    preset.layout = &required("the layout", wanted.layout);
    preset.run_name = text_or_none(wanted.run_name);
    preset.system = text_or_none(wanted.system);
    preset.code_version = text_or_none(wanted.code_version);
    preset.date = text_or_none(wanted.date);
    preset.time = wanted.time;
    preset.scale_factor = wanted.scale_factor;
    std::copy(std::begin(wanted.box_size), std::end(wanted.box_size), preset.box_size.begin());
    preset.hubble_param = wanted.hubble_param;
    preset.omega_matter = wanted.omega_matter;
    preset.omega_lambda = wanted.omega_lambda;
    preset.omega_baryon = wanted.omega_baryon;
    preset.unit_length_cm = wanted.unit_length_cm;
    preset.unit_mass_g = wanted.unit_mass_g;
    preset.unit_time_s = wanted.unit_time_s;
    std::copy(std::begin(wanted.mass_table), std::end(wanted.mass_table), preset.mass_table.begin());
    preset.is_cosmological = wanted.is_cosmological != 0;
    preset.is_periodic = wanted.is_not_periodic == 0;
    return preset;
}

void give_sums(const penstock::SnapshotCellSums& all, penstock_snapshot_cell_sums& out) {
    out.totals = all.totals.data();
    out.total_count = all.totals.size();
    out.extremes = all.extremes.data();
    out.extreme_count = all.extremes.size();
    out.digest = all.digest;
}

void give_facts(const penstock::SnapshotFacts& facts, penstock_snapshot_facts& out) {
    out.file_bytes = facts.file_bytes;
    out.data_bytes = facts.data_bytes;
    out.layout_seconds = facts.layout_seconds;
    out.write_seconds = facts.write_seconds;
    if (out.evidence != nullptr) give_text(out.evidence, facts.evidence.to_json());
}

}  // namespace

extern "C" {

int penstock_snapshot_open(const penstock_context* context, const char* name, const penstock_snapshot_options* options,
                           penstock_snapshot** snapshot, penstock_error* error) {
    return guarded("open snapshot", error, [&] {
        give_handle(snapshot, [&] {
            return penstock::Snapshot(opened(context), &required("the file name", name), snapshot_options(options));
        });
    });
}

int penstock_snapshot_add_group(penstock_snapshot* snapshot, const char* path, penstock_error* error) {
    return guarded("add group", error, [&] { opened(snapshot).add_group(&required("the path", path)); });
}

int penstock_snapshot_add_link(penstock_snapshot* snapshot, const char* path, const char* target,
                               penstock_error* error) {
    return guarded("add link", error,
                   [&] { opened(snapshot).add_link(&required("the path", path), &required("the target", target)); });
}

int penstock_snapshot_add_dataset(penstock_snapshot* snapshot, const penstock_snapshot_dataset* dataset,
                                  penstock_error* error) {
    return guarded("add dataset", error, [&] { opened(snapshot).add_dataset(snapshot_dataset(dataset)); });
}

int penstock_snapshot_add_external_link(penstock_snapshot* snapshot, const char* path, const char* file,
                                        const char* target, penstock_error* error) {
    return guarded("add link", error, [&] {
        opened(snapshot).add_link(&required("the path", path), &required("the target", target),
                                  &required("the name of the file", file));
    });
}

int penstock_snapshot_add_values(penstock_snapshot* snapshot, const penstock_snapshot_dataset* dataset,
                                 const void* values, uint64_t bytes, penstock_error* error) {
    return guarded("add dataset", error, [&] {
        const auto* first = static_cast<const std::byte*>(values);
        if (bytes != 0) required("the values", first);
        opened(snapshot).add_values(snapshot_dataset(dataset), {first, bytes});
    });
}

int penstock_snapshot_add_cells(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                const penstock_snapshot_positions* positions, uint64_t count, penstock_error* error) {
    return guarded("add cells", error, [&] {
        opened(snapshot).add_cells(snapshot_cells(cells), all_positions(positions, count));
    });
}

int penstock_snapshot_count_cells(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                  const penstock_snapshot_positions* positions, uint64_t count,
                                  penstock_snapshot_cell_sums* sums, penstock_error* error) {
    return guarded("add cells", error, [&] {
        penstock_snapshot_cell_sums& out = required("penstock_snapshot_cell_sums", sums);
        penstock::c::check_struct("penstock_snapshot_cell_sums", sums, {out.struct_size, sizeof(out), out.struct_size});
        give_sums(opened(snapshot).count_cells(snapshot_cells(cells), all_positions(positions, count)), out);
    });
}

int penstock_snapshot_sort_by_cells(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                    const penstock_snapshot_positions* positions, uint64_t count,
                                    penstock_error* error) {
    return guarded("add cells", error, [&] {
        opened(snapshot).sort_by_cells(snapshot_cells(cells), all_positions(positions, count));
    });
}

int penstock_snapshot_sort_and_count(penstock_snapshot* snapshot, const penstock_snapshot_cells* cells,
                                     const penstock_snapshot_positions* positions, uint64_t count,
                                     penstock_snapshot_cell_sums* sums, penstock_error* error) {
    return guarded("add cells", error, [&] {
        penstock_snapshot_cell_sums& out = required("penstock_snapshot_cell_sums", sums);
        penstock::c::check_struct("penstock_snapshot_cell_sums", sums, {out.struct_size, sizeof(out), out.struct_size});
        give_sums(opened(snapshot).sort_and_count(snapshot_cells(cells), all_positions(positions, count)), out);
    });
}

int penstock_snapshot_add_counted_cells(penstock_snapshot* snapshot, penstock_error* error) {
    return guarded("add cells", error, [&] { opened(snapshot).add_counted_cells(); });
}

int penstock_snapshot_cell_order(const penstock_snapshot_cells* cells, const penstock_snapshot_positions* positions,
                                 uint64_t* order, penstock_error* error) {
    return guarded("order particles", error, [&] {
        const auto found = penstock::snapshot_cell_order(snapshot_cells(cells),
                                                         snapshot_positions(required("the positions", positions)));
        if (!found.empty()) std::copy(found.begin(), found.end(), &required("the order", order));
    });
}

int penstock_snapshot_set_attribute(penstock_snapshot* snapshot, const char* path,
                                    const penstock_snapshot_attribute* attribute, penstock_error* error) {
    return guarded("set attribute", error,
                   [&] { opened(snapshot).set_attribute(&required("the path", path), snapshot_attribute(attribute)); });
}

int penstock_snapshot_use_preset(penstock_snapshot* snapshot, const penstock_snapshot_preset* preset,
                                 penstock_error* error) {
    return guarded("use preset", error, [&] { opened(snapshot).use_preset(snapshot_preset(preset)); });
}

int penstock_snapshot_use_stream(penstock_snapshot* snapshot, void* stream, penstock_error* error) {
    return guarded("use stream", error, [&] { opened(snapshot).use_stream(reinterpret_cast<std::uintptr_t>(stream)); });
}

int penstock_snapshot_write(penstock_snapshot* snapshot, const penstock_snapshot_field* fields, uint64_t count,
                            penstock_snapshot_facts* facts, penstock_error* error) {
    return guarded("write snapshot", error, [&] {
        if (facts != nullptr) {
            penstock::c::check_struct("penstock_snapshot_facts", facts,
                                      {facts->struct_size, sizeof(penstock_snapshot_facts), facts->struct_size});
        }
        const penstock::SnapshotFacts told = opened(snapshot).write(snapshot_fields(fields, count));
        if (facts != nullptr) give_facts(told, *facts);
    });
}

void penstock_snapshot_free(penstock_snapshot* snapshot) { free_handle(snapshot); }

int penstock_snapshot_digest(const penstock_snapshot* snapshot, uint64_t* digest, penstock_error* error) {
    return guarded("compare snapshots", error, [&] { required("digest", digest) = opened(snapshot).digest(); });
}

int penstock_snapshot_begin(penstock_snapshot* snapshot, const char* place, penstock_error* error) {
    return guarded("begin", error, [&] { opened(snapshot).begin(text_or_none(place)); });
}

int penstock_snapshot_place(const penstock_snapshot* snapshot, penstock_text* place, penstock_error* error) {
    return guarded("tell place", error,
                   [&] { give_text(&required("penstock_text", place), opened(snapshot).place()); });
}

void penstock_snapshot_abandon(penstock_snapshot* snapshot) {
    static_cast<void>(guarded("abandon", nullptr, [&] { opened(snapshot).abandon(); }));
}

int penstock_snapshot_commit(penstock_snapshot* snapshot, penstock_error* error) {
    return guarded("commit", error, [&] { opened(snapshot).commit(); });
}

}  // extern "C"
