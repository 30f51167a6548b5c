// See told_tree.hpp.
#include "snapshot/told_tree.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/create/hdf5/encoder.hpp"
#include "formats/create/hdf5/layout.hpp"
#include "formats/create/hdf5/messages.hpp"
#include "formats/faults.hpp"
#include "snapshot/digest_sum.hpp"
#include "snapshot/snapshot_attribute.hpp"

namespace penstock::snapshot {

using formats::Hdf5Link;
using formats::Hdf5Object;
using formats::ObjectNumber;
using formats::shown;

namespace {

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

std::uint64_t element_bytes(const formats::Hdf5Dataset& dataset) {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(formats::element_count(dataset.shape), dataset.type.item_bytes, &bytes) ||
        bytes > (std::uint64_t{1} << 62)) {
        throw Error(ErrorCode::unsupported, "add dataset", "no file has so many bytes");
    }
    return bytes;
}

// The type of the particles in a group of that name: PartTypeN, or that of GOTHIC.
std::optional<std::uint32_t> particle_type(std::string_view group) {
    constexpr std::string_view kPrefix = "PartType";
    if (group == "snp") return 1;
    if (group.size() != kPrefix.size() + 1 || !group.starts_with(kPrefix)) return std::nullopt;
    const char digit = group.back();
    return digit >= '0' && digit <= '9' ? std::optional<std::uint32_t>(digit - '0') : std::nullopt;
}

void set_chunks(const SnapshotDataset& told, formats::Hdf5Dataset& made) {
    if (told.chunk_rows == 0 || !made.sources.empty() || formats::element_count(made.shape) == 0) return;
    made.chunk = made.shape;
    made.chunk[0] = std::min(told.chunk_rows, made.shape[0]);
    if (told.has_checksums) made.filters.push_back({"fletcher32", {}});
}

}  // namespace

SnapshotTree::SnapshotTree(std::string name, const TreeScope& scope) : name_(std::move(name)), scope_(scope) {
    tree_.file = name_;
    tree_.objects.push_back({.is_group = true});
}

Error SnapshotTree::refused(const char* operation, std::string cause, std::string advice) const {
    return snapshot_error(name_, operation, std::move(cause), std::move(advice));
}

void SnapshotTree::add_group(const std::string& path) {
    formats::Hdf5Tree tree = tree_;
    formats::add_group(tree, path);
    tree_ = std::move(tree);
}

void SnapshotTree::add_link(const std::string& path, const std::string& target, const std::string& file) {
    if (target.empty()) throw refused("add link", "link " + shown(path) + " leads nowhere", "give it a path");
    const std::string whole = without_slash(path);
    const std::size_t slash = whole.rfind('/');
    formats::Hdf5Tree tree = tree_;
    const ObjectNumber group = formats::add_group(tree, slash == std::string::npos ? "" : whole.substr(0, slash));
    Hdf5Link link{.name = whole.substr(slash == std::string::npos ? 0 : slash + 1), .leads = Hdf5Link::Leads::to_path};
    if (!file.empty()) link.leads = Hdf5Link::Leads::to_other_file;
    link.path = target;
    link.file = file;
    formats::add_link(tree, group, std::move(link));
    tree_ = std::move(tree);
}

void SnapshotTree::add_second_name(const std::string& path, const std::string& target) {
    const std::size_t slash = path.rfind('/');
    const ObjectNumber object = object_at(target);
    formats::Hdf5Tree tree = tree_;
    const ObjectNumber group = formats::add_group(tree, path.substr(0, slash));
    formats::add_link(tree, group, {.name = path.substr(slash + 1), .object = object});
    tree_ = std::move(tree);
}

void SnapshotTree::check_rows(const SnapshotDataset& dataset, const std::string& path) const {
    const char* operation = "add dataset";
    const std::vector<std::uint64_t>& rows = dataset.process_rows;
    if (dataset.chunk_rows == 0 && dataset.has_checksums) {
        throw refused(operation, "dataset " + shown(path) + " has checksums and no chunks", "give rows of a chunk");
    }
    if (dataset.chunk_rows != 0 && dataset.shape.empty()) {
        throw refused(operation, "dataset " + shown(path) + " is one value, which has no chunks", "give it a shape");
    }
    if (rows.empty()) return;
    if (rows.size() != scope_.processes) {
        throw refused(operation,
                      "dataset " + shown(path) + " tells the rows of " + std::to_string(rows.size()) +
                          " processes, and there are " + std::to_string(scope_.processes),
                      "give the rows of each");
    }
    const std::uint64_t own = rows[scope_.process];
    if (dataset.shape.empty() || dataset.shape[0] != own) {
        throw refused(operation,
                      "dataset " + shown(path) + " has " +
                          std::to_string(dataset.shape.empty() ? 0 : dataset.shape[0]) +
                          " rows here, and process_rows tells " + std::to_string(own) + " of process " +
                          std::to_string(scope_.process),
                      "give the shape that this process has");
    }
    if (dataset.chunk_rows != 0 && scope_.rows == TreeRows::of_all && scope_.processes > 1) {
        throw refused(operation, "dataset " + shown(path) + " has chunks, and rows of several processes in one file",
                      "give each process a file, or write no chunks");
    }
}

// The place of the rows of this process, and the shape that the file has.
StoredField SnapshotTree::placed(const SnapshotDataset& dataset, formats::Hdf5Dataset& made, TreeData data) const {
    StoredField field{.bytes = element_bytes(made)};
    const std::vector<std::uint64_t>& rows = dataset.process_rows;
    const std::string path = without_slash(dataset.path);
    if (scope_.rows == TreeRows::linked && data == TreeData::of_process) {
        if (made.shape.empty()) {
            throw refused("add dataset", "dataset " + shown(path) + " is one value, which a virtual file has not",
                          "give it a shape");
        }
        std::uint64_t first = 0;
        for (std::uint32_t i = 0; i < scope_.processes; ++i) {
            const std::uint64_t count = rows.empty() ? made.shape[0] : rows[i];
            const std::string file = name_of_process(name_, i);
            if (count != 0) made.sources.push_back({file.substr(file.rfind('/') + 1), "/" + path, first, count});
            first += count;
            if (rows.empty()) break;
        }
        if (!rows.empty()) made.shape[0] = first;
        return field;
    }
    if (scope_.rows != TreeRows::of_all) return field;
    if (rows.empty()) {
        field.is_others = scope_.process != 0;
        return field;
    }
    const std::uint64_t first = std::accumulate(rows.begin(), rows.begin() + scope_.process, std::uint64_t{0});
    made.shape[0] = std::accumulate(rows.begin(), rows.end(), std::uint64_t{0});
    const std::uint64_t all = made.shape[0];
    field.first_byte = all == 0 ? 0 : element_bytes(made) / all * first;
    return field;
}

void SnapshotTree::add_dataset(const SnapshotDataset& dataset, TreeData data) {
    const char* operation = "add dataset";
    const std::string path = without_slash(dataset.path);
    if (fields_.contains(path)) {
        throw refused(operation, "dataset " + shown(path) + " is added twice", "give each dataset a path of its own");
    }
    check_rows(dataset, path);
    Hdf5Object made;
    made.dataset.shape = dataset.shape;
    made.dataset.padding = formats::TextPadding::null_padded;
    if (!snapshot_type(dataset.dtype, made.dataset.type)) {
        throw refused(operation, "dataset " + shown(path) + " has the type " + shown(dataset.dtype) + ", which is none",
                      "use names as float32, uint64 or bool, or S16 for text of 16 bytes");
    }
    static_cast<void>(formats::datatype_bytes(made.dataset.type, made.dataset.padding));  // throws of a foreign type
    StoredField field = placed(dataset, made.dataset, data);
    set_chunks(dataset, made.dataset);
    formats::Hdf5Tree tree = tree_;
    field.object = formats::add_object(tree, path, std::move(made));
    tree_ = std::move(tree);
    fields_[path] = field;
    told_[path] = dataset;
}

ObjectNumber SnapshotTree::object_at(const std::string& path) const {
    if (const std::optional<ObjectNumber> object = found_object(tree_, without_slash(path))) return *object;
    throw refused("set attribute", "there is no group or dataset " + shown(path), "add it first");
}

void SnapshotTree::set_attribute(const std::string& path, const SnapshotAttribute& attribute) {
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

std::vector<std::uint64_t> SnapshotTree::process_rows(const std::string& path) const {
    const auto told = told_.find(path);
    if (told == told_.end()) return std::vector<std::uint64_t>(scope_.processes);
    if (scope_.processes == 1) return {told->second.shape.empty() ? 0 : told->second.shape[0]};
    return told->second.process_rows;
}

bool SnapshotTree::has_rows_of(const std::string& path, const std::string& other) const {
    const std::vector<std::uint64_t> rows = process_rows(path), wanted = process_rows(other);
    if (!rows.empty()) return rows == wanted;
    const std::vector<std::uint64_t>& shape = told_.at(path).shape;
    const bool is_own = scope_.rows == TreeRows::of_this_process;
    const std::uint64_t all = std::accumulate(wanted.begin(), wanted.end(), std::uint64_t{0});
    return !shape.empty() && shape[0] == (is_own ? wanted[scope_.process] : all);
}

// Those that have datasets PartTypeN/NAME, in the order of N, and then snp/NAME.
ParticleGroups SnapshotTree::particle_groups() const {
    ParticleGroups groups;
    for (const auto& [path, field] : fields_) {
        const std::size_t slash = path.find('/');
        const std::optional<std::uint32_t> type = particle_type(path.substr(0, slash));
        if (slash == std::string::npos || !type) continue;
        const formats::Hdf5Dataset& dataset = tree_.objects[field.object].dataset;
        const bool is_new = groups.empty() || groups.back().path != path.substr(0, slash);
        if (dataset.shape.empty() || (!is_new && groups.back().particles != dataset.shape[0])) {
            throw refused("use preset",
                          "dataset " + shown(path) + " has " +
                              std::to_string(dataset.shape.empty() ? 0 : dataset.shape[0]) +
                              " particles; the type has " + std::to_string(is_new ? 0 : groups.back().particles),
                          "give all datasets of a type one first length");
        }
        if (is_new) {
            const std::vector<std::uint64_t>& rows = told_.at(path).process_rows;
            const std::uint64_t all = std::accumulate(rows.begin(), rows.end(), std::uint64_t{0});
            groups.push_back({path.substr(0, slash), *type, dataset.shape[0], rows.empty() ? dataset.shape[0] : all});
        }
        groups.back().fields.push_back(path.substr(slash + 1));
        if (dataset.type.name == "float64") groups.back().has_doubles = true;
    }
    return groups;
}

void SnapshotTree::use_preset(const SnapshotPreset& preset) {
    PresetSubject subject{preset, particle_groups()};
    subject.is_virtual = scope_.rows == TreeRows::linked;
    if (scope_.rows == TreeRows::of_this_process) {
        subject.files = scope_.processes;
        subject.file = scope_.process;
    }
    const PresetParts parts = [&] {
        try {
            return preset_parts(subject);
        } catch (const Error& error) {
            throw refused("use preset", error.info().cause, error.info().advice);
        }
    }();
    for (const std::string& path : parts.groups) add_group(path);
    for (const PresetParts::Linked& link : parts.links) {
        if (link.is_hard) {
            add_second_name(link.path, link.target);
        } else {
            add_link(link.path, link.target, {});
        }
    }
    for (const PresetParts::Attributed& one : parts.attributes) set_attribute(one.path, one.attribute);
}

std::uint64_t SnapshotTree::digest() const {
    DigestSum sum;
    for (const auto& [path, dataset] : told_) {
        sum.add(path);
        sum.add(dataset.dtype);
        for (std::size_t i = dataset.process_rows.empty() ? 0 : 1; i < dataset.shape.size(); ++i)
            sum.add(dataset.shape[i]);
        for (const std::uint64_t rows : dataset.process_rows) sum.add(rows);
    }
    if (scope_.rows == TreeRows::of_all) sum.add(formats::lay_out(tree_).metadata);
    return sum.sum();
}

Error snapshot_error(const std::string& name, const char* operation, std::string cause, std::string advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = operation;
    info.file = name;
    info.cause = std::move(cause);
    info.advice = std::move(advice);
    return Error(std::move(info));
}

std::string without_slash(const std::string& path) { return path.starts_with('/') ? path.substr(1) : path; }

std::string name_of_process(const std::string& name, std::uint32_t process) {
    const std::size_t dot = name.rfind('.'), slash = name.rfind('/');
    const bool has_suffix = dot != std::string::npos && (slash == std::string::npos || dot > slash);
    const std::size_t end =
        has_suffix && (name.substr(dot) == ".hdf5" || name.substr(dot) == ".h5") ? dot : name.size();
    return name.substr(0, end) + "." + std::to_string(process) + name.substr(end);
}

std::string told_type(const formats::Hdf5Dataset& dataset) {
    return dataset.type.name + " " + shown(std::vector<std::int64_t>(dataset.shape.begin(), dataset.shape.end()));
}

}  // namespace penstock::snapshot
