// See values.hpp. python/penstock/snapshot has looked at the types of all that comes here but of options and presets.
#include "python/core/snapshot/values.hpp"

#include <algorithm>
#include <utility>

namespace penstock::python {
namespace {

MemoryKind fields_memory(const std::string& name) {
    if (name == "device") return MemoryKind::device;
    if (name == "host") return MemoryKind::system;
    throw Error(ErrorCode::invalid_argument, "open snapshot", "there is no memory '" + name + "'",
                "use one of auto, device, host");
}

struct TextMember {
    const char* name;
    std::string SnapshotPreset::*member;
};
constexpr TextMember kTexts[] = {{"layout", &SnapshotPreset::layout},
                                 {"run_name", &SnapshotPreset::run_name},
                                 {"system", &SnapshotPreset::system},
                                 {"code_version", &SnapshotPreset::code_version},
                                 {"date", &SnapshotPreset::date}};

struct NumberMember {
    const char* name;
    double SnapshotPreset::*member;
};
constexpr NumberMember kNumbers[] = {{"time", &SnapshotPreset::time},
                                     {"scale_factor", &SnapshotPreset::scale_factor},
                                     {"hubble_param", &SnapshotPreset::hubble_param},
                                     {"omega_matter", &SnapshotPreset::omega_matter},
                                     {"omega_lambda", &SnapshotPreset::omega_lambda},
                                     {"omega_baryon", &SnapshotPreset::omega_baryon},
                                     {"unit_length_cm", &SnapshotPreset::unit_length_cm},
                                     {"unit_mass_g", &SnapshotPreset::unit_mass_g},
                                     {"unit_time_s", &SnapshotPreset::unit_time_s}};

// Whether a list of members has the name; then it is set.
template <class Members, class Value>
bool set_member(const Members& members, SnapshotPreset& preset, const std::string& name, nb::handle value) {
    const auto found =
        std::find_if(std::begin(members), std::end(members), [&](const auto& one) { return name == one.name; });
    if (found == std::end(members)) return false;
    preset.*(found->member) = option<Value>(name, value);
    return true;
}

template <std::size_t Count>
void set_numbers(std::array<double, Count>& numbers, nb::handle value) {
    const auto given = nb::cast<std::vector<double>>(value);
    std::copy_n(given.begin(), std::min(given.size(), Count), numbers.begin());
}

}  // namespace

SnapshotOptions snapshot_options(const nb::kwargs& keywords) {
    SnapshotOptions options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "memory")
            options.memory = fields_memory(option<std::string>(name, value));
        else if (name == "durable")
            options.durable = option<bool>(name, value);
        else if (name == "replace")
            options.replace = option<bool>(name, value);
        else if (name == "path")
            options.transfer.path = path_kind(option<std::string>(name, value));
        else if (name == "process")
            options.process = option<std::uint32_t>(name, value);
        else if (name == "processes")
            options.processes = option<std::uint32_t>(name, value);
        else if (name == "file_each")
            options.file_each = option<bool>(name, value);
        else if (name == "virtual_file")
            options.virtual_file = option<bool>(name, value);
        else
            throw nb::type_error(("a snapshot has no option '" + name + "'").c_str());
    }
    return options;
}

SnapshotPreset snapshot_preset(const nb::kwargs& keywords) {
    SnapshotPreset preset;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (set_member<decltype(kTexts), std::string>(kTexts, preset, name, value)) continue;
        if (set_member<decltype(kNumbers), double>(kNumbers, preset, name, value)) continue;
        if (name == "is_cosmological")
            preset.is_cosmological = option<bool>(name, value);
        else if (name == "is_periodic")
            preset.is_periodic = option<bool>(name, value);
        else if (name == "box_size")
            set_numbers(preset.box_size, value);
        else if (name == "mass_table")
            set_numbers(preset.mass_table, value);
        else
            throw nb::type_error(("a preset has no option '" + name + "'").c_str());
    }
    return preset;
}

SnapshotDataset snapshot_dataset(const nb::kwargs& keywords) {
    SnapshotDataset dataset;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "path")
            dataset.path = nb::cast<std::string>(value);
        else if (name == "dtype")
            dataset.dtype = nb::cast<std::string>(value);
        else if (name == "shape")
            dataset.shape = nb::cast<std::vector<std::uint64_t>>(value);
        else if (name == "process_rows")
            dataset.process_rows = nb::cast<std::vector<std::uint64_t>>(value);
        else if (name == "chunk_rows")
            dataset.chunk_rows = option<std::uint64_t>(name, value);
        else if (name == "has_checksums")
            dataset.has_checksums = option<bool>(name, value);
        else
            throw nb::type_error(("a dataset has no option '" + name + "'").c_str());
    }
    return dataset;
}

SnapshotAttribute snapshot_attribute(const nb::tuple& attribute) {
    SnapshotAttribute made;
    made.name = nb::cast<std::string>(attribute[0]);
    made.dtype = nb::cast<std::string>(attribute[1]);
    made.shape = nb::cast<std::vector<std::uint64_t>>(attribute[2]);
    if (made.dtype.empty()) {
        made.texts = nb::cast<std::vector<std::string>>(attribute[3]);
        return made;
    }
    const auto bytes = nb::cast<nb::bytes>(attribute[3]);
    const auto* first = static_cast<const std::byte*>(bytes.data());
    made.values.assign(first, first + bytes.size());
    return made;
}

}  // namespace penstock::python
