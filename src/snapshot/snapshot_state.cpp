// See snapshot_state.hpp.
#include "snapshot/snapshot_state.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "formats/create/file_sink.hpp"
#include "formats/create/hdf5/encoder.hpp"
#include "formats/faults.hpp"
#include "formats/move/sum_outcomes.hpp"
#include "snapshot/move_fields.hpp"
#include "snapshot/snapshot_attribute.hpp"

namespace penstock::snapshot {

using formats::shown;

namespace {

TreeScope scope_of(const SnapshotOptions& options) {
    return {options.file_each ? TreeRows::of_this_process : TreeRows::of_all, options.process, options.processes};
}

std::uint64_t whole_bytes(const formats::Hdf5Image& image) {
    return std::max<std::uint64_t>(image.end_bytes, image.metadata.size());
}

std::string coordinates_of(std::uint32_t type) { return "PartType" + std::to_string(type) + "/Coordinates"; }

void write_image(const formats::Hdf5Image& image, const std::string& name, const File& file) {
    formats::FileSink sink(name, false);  // the file has no name yet: nothing in it needs an order
    sink.use(file);
    formats::write_metadata(image, sink);
}

}  // namespace

SnapshotState::SnapshotState(const Context& context, std::string name, const SnapshotOptions& options)
    : context_(context), name_(std::move(name)), options_(options), tree_(name_, scope_of(options)) {
    const char* operation = "open snapshot";
    if (name_.empty()) throw refused(operation, "the name is empty", "give the name of a file");
    if (options.memory != MemoryKind::device && options.memory != MemoryKind::system) {
        throw refused(operation, std::string("fields lie in ") + to_string(options.memory) + " memory",
                      "use device, or system for fields of the host");
    }
    if (options.processes == 0 || options.process >= options.processes) {
        throw refused(operation,
                      "process " + std::to_string(options.process) + " of " + std::to_string(options.processes),
                      "number them from 0 on");
    }
    if (options.virtual_file && !options.file_each) {
        throw refused(operation, "a virtual file shows the files of all processes, and they write one",
                      "give each process a file, or no virtual file");
    }
    if (options.virtual_file && options.process == 0) {
        virtual_.emplace(name_, TreeScope{TreeRows::linked, 0, options.processes});
    }
}

Error SnapshotState::refused(const char* operation, std::string cause, std::string advice) const {
    return snapshot_error(name_, operation, std::move(cause), std::move(advice));
}

void SnapshotState::check_stage(const char* operation, WriteStage wanted) const {
    if (!process_.here()) {
        throw Error(ErrorCode::unsupported, operation, "this process was forked from the one that opened the snapshot",
                    "open another one in the child");
    }
    if (stage_ == wanted) return;
    if (stage_ == WriteStage::done) throw refused(operation, "the snapshot is written already", "open another one");
    if (wanted == WriteStage::told) throw refused(operation, "the file is begun already", "tell all before begin");
    throw refused(operation, stage_ == WriteStage::told ? "the file is not begun" : "this is out of order",
                  "several processes call begin, write and commit, in this order");
}

// Both trees are told the same, or neither.
template <typename Call>
void SnapshotState::tell(const char* operation, Call&& call) {
    check_stage(operation, WriteStage::told);
    if (virtual_) {
        SnapshotTree changed = *virtual_;
        call(changed);
        call(tree_);
        *virtual_ = std::move(changed);
    } else {
        call(tree_);
    }
}

// As tell(), of a call that tells several things: all of them or none.
template <typename Call>
void SnapshotState::tell_whole(const char* operation, Call&& call) {
    check_stage(operation, WriteStage::told);
    SnapshotTree before = tree_;
    try {
        tell(operation, call);
    } catch (...) {
        tree_ = std::move(before);
        throw;
    }
}

void SnapshotState::add_group(const std::string& path) {
    tell("add group", [&](SnapshotTree& tree) { tree.add_group(path); });
}
void SnapshotState::add_link(const std::string& path, const std::string& target, const std::string& file) {
    tell("add link", [&](SnapshotTree& tree) { tree.add_link(path, target, file); });
}
void SnapshotState::add_dataset(const SnapshotDataset& dataset) {
    tell("add dataset", [&](SnapshotTree& tree) { tree.add_dataset(dataset); });
}
void SnapshotState::add_values(const SnapshotDataset& dataset, std::span<const std::byte> values) {
    const std::string path = without_slash(dataset.path);
    formats::ElementType type;
    if (snapshot_type(dataset.dtype, type)) {
        const std::uint64_t bytes = formats::element_count(dataset.shape) * type.item_bytes;
        if (values.size() != bytes) {
            throw refused("add dataset",
                          "dataset " + shown(path) + " is given " + std::to_string(values.size()) +
                              " bytes and takes " + std::to_string(bytes),
                          "give all values");
        }
    }
    add_dataset(dataset);
    values_[path].keep(path, values);
}
void SnapshotState::KeptValues::keep(const std::string& path, std::span<const std::byte> values) {
    bytes.assign(values.begin(), values.end());
    field = {path, bytes.data(), bytes.size()};
}

// What is wrong with cells names the file.
template <typename Call>
auto SnapshotState::of_cells(Call&& call) const {
    try {
        return call();
    } catch (const Error& error) {
        throw refused("add cells", error.info().cause, error.info().advice);
    }
}

SnapshotCellSums SnapshotState::count_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    return count_by(cells, types, [&](std::uint32_t, const CellSort& sort) {
        return count_where_they_lie(context_, options_.memory, sort);
    });
}

SnapshotCellSums SnapshotState::sort_and_count(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    return count_by(cells, types, [&](std::uint32_t type, const CellSort& sort) {
        return sort_particles(context_, options_.memory, sort, found_[type]);
    });
}

SnapshotCellSums SnapshotState::count_by(const SnapshotCells& cells, std::span<const SnapshotPositions> types,
                                         const FindCells& find) {
    const char* operation = "add cells";
    check_stage(operation, WriteStage::told);
    for (const SnapshotPositions& one : types) {
        const std::string path = coordinates_of(one.type);
        const std::vector<std::uint64_t> rows = tree_.process_rows(path);
        if (rows.empty()) throw refused(operation, path + " tells no rows of each process", "give process_rows");
        const std::uint64_t own = rows[options_.process];
        if (own == one.particles) continue;
        throw refused(
            operation,
            path + " has " + std::to_string(own) + " particles, and the cells are of " + std::to_string(one.particles),
            "add the dataset first, and give its positions");
    }
    counted_.reset();
    found_.clear();
    if (options_.memory == MemoryKind::device) context_.synchronize_stream(stream_);
    counted_ = of_cells([&] { return snapshot::count_cells(cells, types, options_.process, find); });
    return {counted_->totals, counted_->extremes, cell_digest(*counted_)};
}

void SnapshotState::add_counted_cells() {
    const char* operation = "add cells";
    check_stage(operation, WriteStage::told);
    if (!counted_) throw refused(operation, "no particles were counted", "call count_cells first");
    const CellCounts all = std::move(*counted_);
    counted_.reset();
    ParticleOrders found = std::exchange(found_, {});
    CellRows rows{{}, options_.file_each};
    for (const std::uint32_t type : all.types) rows.process_rows.push_back(tree_.process_rows(coordinates_of(type)));
    const CellDatasets made = of_cells([&] { return cell_datasets(all, rows); });
    rows.has_file_each = false;  // the virtual file has the rows of all files, one behind the other
    const CellDatasets shown = virtual_ ? cell_datasets(all, rows) : CellDatasets{};
    tell_whole(operation, [&](SnapshotTree& tree) {
        for (const CellDatasets::Valued& one : made.datasets) tree.add_dataset(one.dataset, TreeData::of_tree);
        tree.add_group("Cells/Meta-data");
        for (const SnapshotAttribute& one : made.attributes) tree.set_attribute("Cells/Meta-data", one);
    });
    for (const CellDatasets::Valued& one : made.datasets) values_[one.dataset.path].keep(one.dataset.path, one.bytes);
    for (const CellDatasets::Valued& one : shown.datasets) shown_[one.dataset.path].keep(one.dataset.path, one.bytes);
    orders_ = std::move(found);
}

void SnapshotState::check_alone(const char* other_call) const {
    const char* operation = "add cells";
    check_stage(operation, WriteStage::told);
    if (options_.processes == 1) return;
    throw refused(operation, "one process has not all particles",
                  std::string("call ") + other_call + ", and add_counted_cells with the sums of all processes");
}

void SnapshotState::add_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    check_alone("count_cells");
    static_cast<void>(count_cells(cells, types));
    add_counted_cells();
}

void SnapshotState::sort_by_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    check_alone("sort_and_count");
    static_cast<void>(sort_and_count(cells, types));
    add_counted_cells();
}

std::uint64_t SnapshotState::row_bytes(const StoredField& stored) const {
    const formats::Hdf5Dataset& dataset = tree_.tree().objects[stored.object].dataset;
    if (dataset.shape.empty()) return 0;
    return formats::element_count(std::span(dataset.shape).subspan(1)) * dataset.type.item_bytes;
}

const ParticleOrder* SnapshotState::order_of(const std::string& path, const StoredField& stored) const {
    for (const auto& [type, order] : orders_) {
        const std::string group = "PartType" + std::to_string(type) + "/";
        const bool is_inside = path.starts_with(group) && path.find('/', group.size()) == path.npos;
        if (!is_inside || stored.bytes == 0 || row_bytes(stored) * order.particles != stored.bytes) continue;
        return tree_.has_rows_of(path, coordinates_of(type)) ? &order : nullptr;
    }
    return nullptr;
}

void SnapshotState::set_attribute(const std::string& path, const SnapshotAttribute& attribute) {
    tell("set attribute", [&](SnapshotTree& tree) { tree.set_attribute(path, attribute); });
}
void SnapshotState::use_preset(const SnapshotPreset& preset) {
    tell_whole("use preset", [&](SnapshotTree& tree) { tree.use_preset(preset); });
}

void SnapshotState::check_memory(const SnapshotField& field) const {
    const std::string what = "the memory of dataset " + shown(field.dataset);
    if (field.bytes == 0) return;
    if (field.data == nullptr) throw refused("write snapshot", what + " is a null pointer", "give its first element");
    try {
        static_cast<void>(context_.wrap(const_cast<void*>(field.data), field.bytes, options_.memory));
    } catch (const Error& error) {
        if (error.code() != ErrorCode::invalid_argument) throw;
        const bool on_device = options_.memory == MemoryKind::device;
        throw refused("write snapshot", what + ": " + error.info().cause,
                      "this snapshot takes memory of " + (on_device ? context_.device().name() : "the host"));
    }
}

std::vector<SnapshotState::CheckedField> SnapshotState::checked(std::span<const SnapshotField> fields) const {
    const char* operation = "write snapshot";
    std::map<std::string, const SnapshotField*> given;
    for (const SnapshotField& field : fields) {
        const auto dataset = tree_.fields().find(without_slash(field.dataset));
        const std::string what = "dataset " + shown(field.dataset);
        if (dataset == tree_.fields().end()) throw refused(operation, what + " was not added", "add it first");
        if (!given.emplace(dataset->first, &field).second) {
            throw refused(operation, what + " is given twice", "give each dataset once");
        }
        if (values_.contains(dataset->first)) {
            throw refused(operation, what + " has its values already", "give other datasets");
        }
        if (dataset->second.is_others) continue;
        if (field.bytes != dataset->second.bytes) {
            throw refused(operation,
                          what + " is given " + std::to_string(field.bytes) + " bytes and takes " +
                              std::to_string(dataset->second.bytes) + ": " +
                              told_type(tree_.tree().objects[dataset->second.object].dataset),
                          "give the shape of the array when the dataset is added");
        }
        check_memory(field);
    }
    std::vector<CheckedField> parts;
    for (const auto& [path, stored] : tree_.fields()) {
        if (stored.is_others) continue;
        const auto field = given.find(path);
        if (const auto values = values_.find(path); values != values_.end()) {
            if (order_of(path, stored) != nullptr) {
                throw refused(operation, "dataset " + shown(path) + " has its values, and its particles are sorted",
                              "give write the elements of this dataset, in place of add_values");
            }
            parts.push_back({&values->second.field, stored});
        } else if (field != given.end()) {
            parts.push_back({field->second, stored});
        } else if (stored.bytes != 0) {
            throw refused(operation, "dataset " + shown(path) + " is not given", "give each dataset once");
        }
    }
    return parts;
}

void SnapshotState::open_file(const std::string& place) {
    const auto began = Clock::now();
    image_ = formats::lay_out(tree_.tree());
    layout_seconds_ = seconds_since(began);
    if (!is_maker()) {
        if (place.empty()) throw refused("begin", "there is no place of process 0", "let it begin, and give its place");
        file_.emplace(context_, place, options_.durable);
        return;
    }
    const std::string name = options_.file_each ? name_of_process(name_, options_.process) : name_;
    file_.emplace(context_, SnapshotFileOptions{name, whole_bytes(image_), options_.durable, options_.replace,
                                                options_.processes > 1 && !options_.file_each});
    if (!virtual_) return;
    shown_image_ = formats::lay_out(virtual_->tree());
    shown_file_.emplace(context_, SnapshotFileOptions{name_, whole_bytes(shown_image_), options_.durable,
                                                      options_.replace, false});
}

void SnapshotState::begin(const std::string& place) {
    check_stage("begin", WriteStage::told);
    open_file(place);
    stage_ = WriteStage::begun;
}

const std::string& SnapshotState::place() const {
    static const std::string kNone;
    return file_ ? file_->place() : kNone;
}

SnapshotFacts SnapshotState::move(std::span<const CheckedField> parts, const SnapshotWatch& goes_on) {
    SnapshotFacts facts;
    facts.layout_seconds = layout_seconds_;
    facts.file_bytes = whole_bytes(image_);
    std::vector<FieldPiece> pieces, kept;  // of fields, and of values that were given before
    std::vector<SortedPiece> sorted;
    for (const CheckedField& part : parts) {
        facts.data_bytes += part.field->bytes;
        const formats::ObjectNumber object = part.stored.object;
        const std::vector<FieldPiece> some = pieces_of(
            *part.field, part.stored.first_byte, tree_.tree().objects[object].dataset, image_.objects[object].data);
        if (const ParticleOrder* order = order_of(without_slash(part.field->dataset), part.stored)) {
            for (const FieldPiece& one : some) sorted.push_back({one, order, row_bytes(part.stored)});
            continue;
        }
        std::vector<FieldPiece>& into = values_.contains(part.field->dataset) ? kept : pieces;
        into.insert(into.end(), some.begin(), some.end());
    }
    move_fields(context_, {&file_->file(), name_, MemoryKind::system, {}}, kept, goes_on);
    if (options_.memory == MemoryKind::device) context_.synchronize_stream(stream_);
    const FieldTarget target{&file_->file(), name_, options_.memory, options_.transfer};
    Outcome sum, part;
    sum.evidence = move_fields(context_, target, pieces, goes_on);
    if (!sorted.empty()) {
        part.evidence = move_sorted(context_, target, {sorted}, goes_on);
        formats::add_outcome(sum, part);
    }
    facts.evidence = std::move(sum.evidence);
    return facts;
}

SnapshotFacts SnapshotState::write(std::span<const SnapshotField> fields, const SnapshotWatch& goes_on) {
    const bool is_alone = options_.processes == 1;
    check_stage("write snapshot", is_alone ? WriteStage::told : WriteStage::begun);
    const std::vector<CheckedField> parts = checked(fields);
    const auto began = Clock::now();
    SnapshotFacts facts;
    try {
        if (is_alone) open_file({});
        facts = move(parts, goes_on);
        if (is_maker()) write_image(image_, name_, file_->file());
        file_->settle();
        if (is_alone) give_names();
    } catch (...) {
        if (is_alone) let_go();
        throw;
    }
    stage_ = WriteStage::moved;
    if (is_alone) end();
    facts.write_seconds = seconds_since(began) - layout_seconds_;
    return facts;
}

void SnapshotState::give_names() {
    if (is_maker()) file_->publish();
    if (virtual_) write_virtual_file();
}

void SnapshotState::write_virtual_file() {
    std::vector<FieldPiece> pieces;
    for (const auto& [path, kept] : shown_) {
        const formats::ObjectNumber object = virtual_->fields().at(path).object;
        const std::vector<FieldPiece> some =
            pieces_of(kept.field, 0, virtual_->tree().objects[object].dataset, shown_image_.objects[object].data);
        pieces.insert(pieces.end(), some.begin(), some.end());
    }
    move_fields(context_, {&shown_file_->file(), name_, MemoryKind::system, {}}, pieces, {});
    write_image(shown_image_, name_, shown_file_->file());
    shown_file_->publish();
}

void SnapshotState::abandon() noexcept {
    if (stage_ == WriteStage::done || !process_.here()) return;
    let_go();
    stage_ = WriteStage::told;
}

void SnapshotState::commit() {
    check_stage("commit", WriteStage::moved);
    give_names();
    end();
}

// A snapshot that a program keeps holds no memory of the device, no descriptor, and no blocks of a file that was
// deleted since.
void SnapshotState::end() noexcept {
    stage_ = WriteStage::done;
    orders_.clear();
    let_go();
}

}  // namespace penstock::snapshot
