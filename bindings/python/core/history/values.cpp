// See values.hpp. python/penstock/history.py has looked at the types of all that comes here but of options.
#include "python/core/history/values.hpp"

#include <utility>

namespace penstock::python {
namespace {

using Names = std::vector<std::string>;
using Lengths = std::vector<std::uint64_t>;

HistoryStatistic statistic_of(const std::string& name) {
    constexpr std::pair<const char*, HistoryStatistic> kNames[] = {{"", HistoryStatistic::none},
                                                                   {"mean", HistoryStatistic::mean},
                                                                   {"minimum", HistoryStatistic::minimum},
                                                                   {"maximum", HistoryStatistic::maximum}};
    for (const auto& [known, statistic] : kNames) {
        if (name == known) return statistic;
    }
    throw Error(ErrorCode::invalid_argument, "define", "there is no statistic '" + name + "'",
                "use one of mean, minimum, maximum, or None");
}

MemoryKind memory_of(const std::string& name) {
    if (name == "device") return MemoryKind::device;
    if (name == "host") return MemoryKind::system;
    throw Error(ErrorCode::invalid_argument, "open history", "there is no memory '" + name + "'",
                "use one of auto, device, host");
}

// (name, level, shuffle)
HistoryCompression compression_of(nb::handle value) {
    return {option<std::string>("compression", value[0]), option<std::uint32_t>("compression_level", value[1]),
            option<bool>("shuffle", value[2])};
}

std::vector<HistoryAttribute> attributes_of(nb::handle list) {
    std::vector<HistoryAttribute> all;
    for (const nb::handle one : list) all.push_back(history_attribute(nb::cast<nb::tuple>(one)));
    return all;
}

[[noreturn]] void refuse_keyword(const char* owner, const std::string& name) {
    throw nb::type_error((std::string(owner) + " has no option '" + name + "'").c_str());
}

}  // namespace

HistoryOptions history_options(const nb::kwargs& keywords) {
    HistoryOptions options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "format")
            options.format = option<std::string>(name, value);
        else if (name == "slots")
            options.slots = option<std::uint32_t>(name, value);
        else if (name == "memory")
            options.memory = memory_of(option<std::string>(name, value));
        else if (name == "time_units")
            options.time_units = option<std::string>(name, value);
        else if (name == "calendar")
            options.calendar = option<std::string>(name, value);
        else if (name == "start_time")
            options.start_time = option<double>(name, value);
        else if (name == "durable")
            options.durable = option<bool>(name, value);
        else if (name == "replace")
            options.replace = option<bool>(name, value);
        else if (name == "may_have_gaps")
            options.may_have_gaps = option<bool>(name, value);
        else if (name == "path")
            options.transfer.path = path_kind(option<std::string>(name, value));
        else if (name == "compression")
            options.compression = compression_of(value);
        else if (name == "encode_threads")
            options.encode_threads = option<std::uint32_t>(name, value);
        else if (name == "process")
            options.process = option<std::uint32_t>(name, value);
        else if (name == "processes")
            options.processes = option<std::uint32_t>(name, value);
        else
            refuse_keyword("a history", name);
    }
    return options;
}

HistoryVariable history_variable(const nb::kwargs& keywords) {
    HistoryVariable variable;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "name")
            variable.name = option<std::string>(name, value);
        else if (name == "dimensions")
            variable.dimensions = nb::cast<Names>(value);
        else if (name == "shape")
            variable.shape = nb::cast<Lengths>(value);
        else if (name == "halo_low")
            variable.halo_low = nb::cast<Lengths>(value);
        else if (name == "halo_high")
            variable.halo_high = nb::cast<Lengths>(value);
        else if (name == "dtype")
            variable.dtype = option<std::string>(name, value);
        else if (name == "source_dtype")
            variable.source_dtype = option<std::string>(name, value);
        else if (name == "statistic")
            variable.statistic = statistic_of(option<std::string>(name, value));
        else if (name == "keep_bits")
            variable.keep_bits = option<std::uint32_t>(name, value);
        else if (name == "file_dimensions")
            variable.file_dimensions = nb::cast<Names>(value);
        else if (name == "attributes")
            variable.attributes = attributes_of(value);
        else if (name == "compression") {
            if (!value.is_none()) variable.compression = compression_of(value);
        } else if (name == "chunk_shape")
            variable.chunk_shape = nb::cast<Lengths>(value);
        else if (name == "global_shape")
            variable.global_shape = nb::cast<Lengths>(value);
        else if (name == "start")
            variable.start = nb::cast<Lengths>(value);
        else
            refuse_keyword("a variable", name);
    }
    return variable;
}

HistoryConstant history_constant(const nb::kwargs& keywords) {
    HistoryConstant constant;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "name")
            constant.name = option<std::string>(name, value);
        else if (name == "dimensions")
            constant.dimensions = nb::cast<Names>(value);
        else if (name == "shape")
            constant.shape = nb::cast<Lengths>(value);
        else if (name == "dtype")
            constant.dtype = option<std::string>(name, value);
        else if (name == "values") {
            const auto bytes = nb::cast<nb::bytes>(value);
            const auto* first = static_cast<const std::byte*>(bytes.data());
            constant.values.assign(first, first + bytes.size());
        } else if (name == "attributes")
            constant.attributes = attributes_of(value);
        else
            refuse_keyword("a constant", name);
    }
    return constant;
}

HistoryAttribute history_attribute(const nb::tuple& attribute) {
    HistoryAttribute made;
    made.name = nb::cast<std::string>(attribute[0]);
    made.dtype = nb::cast<std::string>(attribute[1]);
    if (made.dtype.empty())
        made.text = nb::cast<std::string>(attribute[2]);
    else
        made.numbers = nb::cast<std::vector<double>>(attribute[2]);
    return made;
}

// (faces, halo, processes, is periodic, factors of centres, factors of faces)
HistoryGridAxis grid_axis(nb::handle told) {
    HistoryGridAxis axis;
    axis.faces = nb::cast<std::vector<double>>(told[0]);
    axis.halo = whole_number("halo", told[1], kMostBytes);
    axis.processes = option<std::uint32_t>("processes", told[2]);
    axis.is_periodic = option<bool>("periodic", told[3]);
    axis.centre_factors = nb::cast<std::vector<double>>(told[4]);
    axis.face_factors = nb::cast<std::vector<double>>(told[5]);
    return axis;
}

HistoryPreset history_preset(const nb::kwargs& keywords) {
    HistoryPreset preset;
    const std::pair<const char*, std::string*> texts[] = {{"layout", &preset.layout},
                                                          {"title", &preset.title},
                                                          {"source", &preset.source},
                                                          {"institution", &preset.institution},
                                                          {"mapping", &preset.mapping}};
    for (const auto& [name, member] : texts) *member = option<std::string>(name, keywords[name]);
    const std::pair<const char*, HistoryGridAxis*> axes[] = {{"x", &preset.x}, {"y", &preset.y}, {"z", &preset.z}};
    for (const auto& [name, member] : axes) *member = grid_axis(keywords[name]);
    const std::pair<const char*, std::vector<double>*> lists[] = {{"ocean_faces", &preset.ocean_faces},
                                                                  {"land_faces", &preset.land_faces},
                                                                  {"urban_faces", &preset.urban_faces},
                                                                  {"pressures_hpa", &preset.pressures_hpa}};
    for (const auto& [name, member] : lists) *member = nb::cast<std::vector<double>>(keywords[name]);
    preset.process = option<std::uint32_t>("process", keywords["process"]);
    preset.has_boundary = option<bool>("boundary", keywords["boundary"]);
    return preset;
}

nb::dict facts_to_dict(const HistoryFacts& facts) {
    nb::dict fields;
    fields["steps_ended"] = facts.steps_ended;
    fields["steps_written"] = facts.steps_written;
    fields["steps_published"] = facts.steps_published;
    fields["step_bytes"] = facts.step_bytes;
    fields["slot_bytes"] = facts.slot_bytes;
    fields["stored_bytes"] = facts.stored_bytes;
    fields["put_seconds"] = facts.put_seconds;
    fields["wait_seconds"] = facts.wait_seconds;
    fields["write_seconds"] = facts.write_seconds;
    fields["encode_seconds"] = facts.encode_seconds;
    fields["evidence_json"] = text(facts.last.to_json());
    return fields;
}

}  // namespace penstock::python
