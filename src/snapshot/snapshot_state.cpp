// See snapshot_state.hpp.
#include "snapshot/snapshot_state.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/create/file_sink.hpp"
#include "formats/create/hdf5/encoder.hpp"
#include "formats/create/hdf5/messages.hpp"
#include "formats/faults.hpp"
#include "snapshot/snapshot_attribute.hpp"

namespace penstock::snapshot {

using formats::Hdf5Link;
using formats::Hdf5Object;
using formats::ObjectNumber;
using formats::shown;

namespace {

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

std::string without_slash(const std::string& path) { return path.starts_with('/') ? path.substr(1) : path; }

// The object of that path, if there is one. No links of other kinds are followed.
std::optional<ObjectNumber> found_object(const formats::Hdf5Tree& tree, const std::string& path) {
    ObjectNumber object = 0;
    for (std::size_t begin = 0; begin < path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::vector<Hdf5Link>& links = tree.objects[object].links;
        const std::string name = path.substr(begin, end - begin);
        const auto link = std::find_if(links.begin(), links.end(), [&](const Hdf5Link& one) {
            return one.name == name && one.leads == Hdf5Link::Leads::to_object;
        });
        if (link == links.end()) return std::nullopt;
        object = link->object;
        begin = end + 1;
    }
    return object;
}

std::uint64_t data_bytes(const formats::Hdf5Dataset& dataset) {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(formats::element_count(dataset.shape), dataset.type.item_bytes, &bytes) ||
        bytes > (std::uint64_t{1} << 62)) {
        throw Error(ErrorCode::unsupported, "add dataset", "no file has so many bytes");
    }
    return bytes;
}

std::string told(const formats::Hdf5Dataset& dataset) {
    return dataset.type.name + " " + shown(std::vector<std::int64_t>(dataset.shape.begin(), dataset.shape.end()));
}

}  // namespace

SnapshotState::SnapshotState(const Context& context, std::string name, const SnapshotOptions& options)
    : context_(context), name_(std::move(name)), options_(options) {
    const char* operation = "open snapshot";
    if (name_.empty()) throw refused(operation, "the name is empty", "give the name of a file");
    if (options.memory != MemoryKind::device && options.memory != MemoryKind::system) {
        throw refused(operation, std::string("fields lie in ") + to_string(options.memory) + " memory",
                      "use device, or system for fields of the host");
    }
    tree_.file = name_;
    tree_.objects.push_back({.is_group = true});
}

Error SnapshotState::refused(const char* operation, std::string cause, std::string advice) const {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = operation;
    info.file = name_;
    info.cause = std::move(cause);
    info.advice = std::move(advice);
    return Error(std::move(info));
}

void SnapshotState::check_open(const char* operation) const {
    if (!process_.here()) {
        throw Error(ErrorCode::unsupported, operation, "this process was forked from the one that opened the snapshot",
                    "open another one in the child");
    }
    if (is_written_) throw refused(operation, "the snapshot is written already", "open another one");
}

void SnapshotState::add_group(const std::string& path) {
    check_open("add group");
    formats::Hdf5Tree tree = tree_;
    formats::add_group(tree, path);
    tree_ = std::move(tree);
}

void SnapshotState::add_link(const std::string& path, const std::string& target) {
    check_open("add link");
    if (target.empty()) throw refused("add link", "link " + shown(path) + " leads nowhere", "give it a path");
    const std::string whole = without_slash(path);
    const std::size_t slash = whole.rfind('/');
    formats::Hdf5Tree tree = tree_;
    const ObjectNumber group = formats::add_group(tree, slash == std::string::npos ? "" : whole.substr(0, slash));
    Hdf5Link link{.name = whole.substr(slash == std::string::npos ? 0 : slash + 1), .leads = Hdf5Link::Leads::to_path};
    link.path = target;
    formats::add_link(tree, group, std::move(link));
    tree_ = std::move(tree);
}

void SnapshotState::add_dataset(const SnapshotDataset& dataset) {
    const char* operation = "add dataset";
    check_open(operation);
    const std::string path = without_slash(dataset.path);
    if (datasets_.contains(path)) {
        throw refused(operation, "dataset " + shown(path) + " is added twice", "give each dataset a path of its own");
    }
    Hdf5Object made;
    made.dataset.shape = dataset.shape;
    if (!formats::type_named(dataset.dtype, made.dataset.type)) {
        throw refused(operation, "dataset " + shown(path) + " has the type " + shown(dataset.dtype) + ", which is none",
                      "use names as float32, uint64 or bool");
    }
    static_cast<void>(formats::datatype_bytes(made.dataset.type, made.dataset.padding));  // throws of a foreign type
    static_cast<void>(data_bytes(made.dataset));
    formats::Hdf5Tree tree = tree_;
    const ObjectNumber object = formats::add_object(tree, path, std::move(made));
    tree_ = std::move(tree);
    datasets_[path] = object;
}

ObjectNumber SnapshotState::object_at(const std::string& path) const {
    if (const std::optional<ObjectNumber> object = found_object(tree_, without_slash(path))) return *object;
    throw refused("set attribute", "there is no group or dataset " + shown(path), "add it first");
}

void SnapshotState::set_attribute(const std::string& path, const SnapshotAttribute& attribute) {
    check_open("set attribute");
    std::vector<formats::Hdf5Attribute>& all = tree_.objects[object_at(path)].attributes;
    formats::Hdf5Attribute made = [&] {
        try {
            formats::Hdf5Attribute one = tree_attribute(attribute);
            static_cast<void>(formats::attribute_message(one, {}));  // throws of one that is too long
            return one;
        } catch (const Error& error) {
            ErrorInfo info = error.info();
            info.operation = "set attribute";
            info.file = name_;
            info.cause = "attribute " + shown(attribute.name) + " of " + shown(path) + " " + info.cause;
            throw Error(std::move(info));
        }
    }();
    const auto there = std::find_if(
        all.begin(), all.end(), [&](const formats::Hdf5Attribute& one) { return one.value.name == attribute.name; });
    if (there != all.end()) {
        *there = std::move(made);
    } else {
        all.push_back(std::move(made));
    }
}

// Those that have datasets PartTypeN/NAME, in the order of N.
std::vector<ParticleGroup> SnapshotState::particle_groups() const {
    constexpr std::string_view kPrefix = "PartType";
    std::vector<ParticleGroup> groups;
    for (const auto& [path, object] : datasets_) {
        const std::size_t slash = path.find('/');
        if (slash != kPrefix.size() + 1 || !path.starts_with(kPrefix) || path[slash - 1] < '0' || path[slash - 1] > '9')
            continue;
        const std::vector<std::uint64_t>& shape = tree_.objects[object].dataset.shape;
        const auto type = static_cast<std::uint32_t>(path[slash - 1] - '0');
        const bool is_new = groups.empty() || groups.back().type != type;
        if (shape.empty() || (!is_new && groups.back().particles != shape[0])) {
            throw refused("use preset",
                          "dataset " + shown(path) + " has " + std::to_string(shape.empty() ? 0 : shape[0]) +
                              " particles; the type has " + std::to_string(is_new ? 0 : groups.back().particles),
                          "give all datasets of a type one first length");
        }
        if (is_new) groups.push_back({type, shape[0]});
        groups.back().fields.push_back(path.substr(slash + 1));
    }
    return groups;
}

void SnapshotState::use_preset(const SnapshotPreset& preset) {
    check_open("use preset");
    const std::vector<ParticleGroup> groups = particle_groups();
    const PresetParts parts = [&] {
        try {
            return preset_parts(preset, groups);
        } catch (const Error& error) {
            throw refused("use preset", error.info().cause, error.info().advice);
        }
    }();
    for (const std::string& path : parts.groups) add_group(path);
    for (const PresetParts::Linked& link : parts.links) add_link(link.path, link.target);
    for (const PresetParts::Attributed& one : parts.attributes) set_attribute(one.path, one.attribute);
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
        const auto dataset = datasets_.find(without_slash(field.dataset));
        const std::string what = "dataset " + shown(field.dataset);
        if (dataset == datasets_.end()) throw refused(operation, what + " was not added", "add it first");
        if (!given.emplace(dataset->first, &field).second) {
            throw refused(operation, what + " is given twice", "give each dataset once");
        }
        const formats::Hdf5Dataset& stored = tree_.objects[dataset->second].dataset;
        if (field.bytes != data_bytes(stored)) {
            throw refused(operation,
                          what + " is given " + std::to_string(field.bytes) + " bytes and takes " +
                              std::to_string(data_bytes(stored)) + ": " + told(stored),
                          "give the shape of the array when the dataset is added");
        }
        check_memory(field);
    }
    std::vector<CheckedField> parts;
    for (const auto& [path, object] : datasets_) {
        const auto field = given.find(path);
        if (field == given.end()) {
            throw refused(operation, "dataset " + shown(path) + " is not given", "give each dataset once");
        }
        parts.push_back({field->second, object});
    }
    return parts;
}

Evidence SnapshotState::move(const File& file, const formats::Hdf5Image& image,
                             std::span<const CheckedField> parts) const {
    std::vector<Range> ranges;
    std::vector<const SnapshotField*> moved;
    for (const CheckedField& part : parts) {
        if (part.field->bytes == 0) continue;
        const formats::DataPlace& place = image.objects[part.object].data[0];
        ranges.push_back({&file, place.offset_bytes, const_cast<void*>(part.field->data), place.bytes});
        moved.push_back(part.field);
    }
    if (ranges.empty()) return {};
    if (options_.memory == MemoryKind::device) context_.synchronize_stream(stream_);
    Outcome outcome = context_.start(Direction::write, ranges, options_.memory, options_.transfer).result();
    if (outcome.ok()) return std::move(outcome.evidence);
    ErrorInfo info = outcome.error;
    info.operation = "write snapshot";
    info.file = name_;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const Range& range = ranges[i];
        if (info.offset_bytes >= range.offset_bytes && info.offset_bytes - range.offset_bytes < range.bytes) {
            info.cause = "dataset " + shown(moved[i]->dataset) + ": " + info.cause;
        }
    }
    throw Error(std::move(info));
}

SnapshotFacts SnapshotState::write(std::span<const SnapshotField> fields) {
    check_open("write snapshot");
    const std::vector<CheckedField> parts = checked(fields);
    const auto began = Clock::now();
    const formats::Hdf5Image image = formats::lay_out(tree_);
    SnapshotFacts facts;
    facts.layout_seconds = seconds_since(began);
    facts.file_bytes = std::max<std::uint64_t>(image.end_bytes, image.metadata.size());
    for (const SnapshotField& field : fields) facts.data_bytes += field.bytes;
    OpenOptions wanted;
    wanted.mode = OpenMode::create;
    wanted.size_bytes = facts.file_bytes;
    wanted.durable = options_.durable;
    wanted.replace = options_.replace;
    const auto laid_out = Clock::now();
    File file = context_.open(name_, wanted);
    facts.evidence = move(file, image, parts);
    formats::FileSink sink(name_, false);  // the file has no name yet: nothing in it needs an order
    sink.use(file);
    formats::write_metadata(image, sink);
    file.close();
    is_written_ = true;
    facts.write_seconds = seconds_since(laid_out);
    return facts;
}

}  // namespace penstock::snapshot
