// The functions of penstock_history.h.
#include "penstock/history.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "c/boundary.hpp"
#include "c/handles.hpp"
#include "c/values.hpp"
#include "penstock_history.h"

using penstock::c::copied;
using penstock::c::free_handle;
using penstock::c::give_handle;
using penstock::c::give_text;
using penstock::c::guarded;
using penstock::c::opened;
using penstock::c::refuse;
using penstock::c::required;

namespace {

// Sizes of structs that callers compiled before there was compression.
constexpr std::uint64_t kFirstOptions = 72, kFirstVariable = 112, kFirstFacts = 80;
static_assert(offsetof(penstock_history_options, compression) == kFirstOptions);
static_assert(offsetof(penstock_history_variable, compression) == kFirstVariable);
static_assert(offsetof(penstock_history_facts, stored_bytes) == kFirstFacts);

std::string text_or(const char* given, const char* otherwise) { return given == nullptr ? otherwise : given; }

penstock::HistoryOptions history_options(const penstock_history_options* given) {
    const auto wanted = copied<penstock_history_options, kFirstOptions>("penstock_history_options", given);
    penstock::HistoryOptions options;
    options.format = text_or(wanted.format, "cdf5");
    options.time_units = text_or(wanted.time_units, "");
    options.calendar = text_or(wanted.calendar, "standard");
    options.transfer.path = penstock::c::path_named(wanted.path);
    options.start_time = wanted.start_time;
    options.slots = wanted.slots == 0 ? options.slots : wanted.slots == PENSTOCK_NO_SLOTS ? 0 : wanted.slots;
    options.memory = penstock::c::checked_kind(wanted.memory);
    options.durable = wanted.durable != 0;
    options.replace = wanted.refuse_existing == 0;
    options.may_have_gaps = wanted.may_have_gaps != 0;
    options.process = wanted.process;
    options.processes = wanted.processes == 0 ? 1 : wanted.processes;
    options.compression = {text_or(wanted.compression, "none"), wanted.compression_level, wanted.no_shuffle == 0};
    options.encode_threads = wanted.encode_threads;
    return options;
}

template <typename Entry, typename Given>
std::vector<Entry> list(const char* name, const Given* entries, std::uint64_t rank) {
    if (entries == nullptr || rank == 0) return {};
    std::vector<Entry> found;
    for (std::uint64_t i = 0; i < rank; ++i) {
        if constexpr (std::is_same_v<Entry, std::string>) {
            found.emplace_back(&required(name, entries[i]));
        } else {
            found.push_back(entries[i]);
        }
    }
    return found;
}

std::uint64_t checked_rank(std::uint64_t rank) {
    if (rank <= PENSTOCK_MOST_DIMENSIONS) return rank;
    if (rank > UINT32_MAX / 2) {  // below 0, as Fortran's module says it
        refuse("define", "dimensions, shape and halo have different lengths", "give one for each");
    }
    refuse("define", "the rank is " + std::to_string(rank), "use at most 16 dimensions");
}

penstock::HistoryStatistic checked_statistic(std::int32_t statistic) {
    if (statistic >= PENSTOCK_NO_STATISTIC && statistic <= PENSTOCK_MAXIMUM) {
        return static_cast<penstock::HistoryStatistic>(statistic);
    }
    refuse("define", "statistic is " + std::to_string(statistic),
           "use PENSTOCK_NO_STATISTIC, PENSTOCK_MEAN, PENSTOCK_MINIMUM or PENSTOCK_MAXIMUM");
}

penstock::HistoryVariable history_variable(const penstock_history_variable* given) {
    const auto wanted = copied<penstock_history_variable, kFirstVariable>(
        "penstock_history_variable", &required("penstock_history_variable", given));
    const std::uint64_t rank = checked_rank(wanted.rank);
    penstock::HistoryVariable variable;
    variable.name = &required("the name of the variable", wanted.name);
    variable.dtype = text_or(wanted.dtype, "float32");
    variable.source_dtype = text_or(wanted.source_dtype, "");
    if (rank != 0) {
        required("penstock_history_variable.dimensions", wanted.dimensions);
        required("penstock_history_variable.shape", wanted.shape);
    }
    variable.dimensions = list<std::string>("a name of dimensions", wanted.dimensions, rank);
    variable.shape = list<std::uint64_t>("shape", wanted.shape, rank);
    variable.halo_low = list<std::uint64_t>("halo_low", wanted.halo_low, rank);
    variable.halo_high = list<std::uint64_t>("halo_high", wanted.halo_high, rank);
    variable.strides_bytes = list<std::int64_t>("strides_bytes", wanted.strides_bytes, rank);
    variable.file_dimensions = list<std::string>("a name of file_dimensions", wanted.file_dimensions, rank);
    variable.global_shape = list<std::uint64_t>("global_shape", wanted.global_shape, rank);
    variable.start = list<std::uint64_t>("start", wanted.start, rank);
    variable.statistic = checked_statistic(wanted.statistic);
    variable.keep_bits = wanted.keep_bits;
    variable.chunk_shape = list<std::uint64_t>("chunk_shape", wanted.chunk_shape, rank);
    if (wanted.compression != nullptr) {
        variable.compression.emplace(
            penstock::HistoryCompression{wanted.compression, wanted.compression_level, wanted.no_shuffle == 0});
    }
    return variable;
}

penstock::HistoryConstant history_constant(const penstock_history_constant* given) {
    const auto wanted = copied("penstock_history_constant", &required("penstock_history_constant", given));
    const std::uint64_t rank = checked_rank(wanted.rank);
    penstock::HistoryConstant constant;
    constant.name = &required("the name of the constant", wanted.name);
    constant.dtype = text_or(wanted.dtype, "float64");
    constant.dimensions = list<std::string>("a name of dimensions", wanted.dimensions, rank);
    constant.shape = list<std::uint64_t>("shape", wanted.shape, rank);
    const auto* first = static_cast<const std::byte*>(
        &required("penstock_history_constant.values", static_cast<const std::byte*>(wanted.values)));
    constant.values.assign(first, first + wanted.bytes);
    return constant;
}

penstock::HistoryAttribute history_attribute(const penstock_attribute* given) {
    const auto wanted = copied("penstock_attribute", &required("penstock_attribute", given));
    penstock::HistoryAttribute attribute;
    attribute.name = &required("the name of the attribute", wanted.name);
    if (wanted.text != nullptr) {
        attribute.text = wanted.text;
        return attribute;
    }
    attribute.dtype = &required("penstock_attribute.dtype, or text,", wanted.dtype);
    if (wanted.count != 0) required("penstock_attribute.numbers", wanted.numbers);
    attribute.numbers.assign(wanted.numbers, wanted.numbers + wanted.count);
    return attribute;
}

std::vector<double> positions(const char* name, const double* given, std::uint64_t count) {
    if (count != 0) required(name, given);
    return {given, given + count};
}

penstock::HistoryGridAxis grid_axis(const penstock_history_grid_axis& given) {
    penstock::HistoryGridAxis axis;
    axis.faces = positions("penstock_history_grid_axis.faces", given.faces, given.face_count);
    axis.halo = given.halo;
    axis.processes = given.processes == 0 ? 1 : given.processes;
    axis.is_periodic = given.is_periodic != 0;
    if (given.face_count == 0) return axis;
    if (given.centre_factors != nullptr)
        axis.centre_factors.assign(given.centre_factors, given.centre_factors + given.face_count - 1);
    if (given.face_factors != nullptr)
        axis.face_factors.assign(given.face_factors, given.face_factors + given.face_count);
    return axis;
}

penstock::HistoryPreset history_preset(const penstock_history_preset* given) {
    const auto wanted = copied("penstock_history_preset", &required("penstock_history_preset", given));
    penstock::HistoryPreset preset;
    preset.layout = text_or(wanted.layout, "scale");
    preset.title = text_or(wanted.title, "");
    preset.source = text_or(wanted.source, "");
    preset.institution = text_or(wanted.institution, "");
    preset.mapping = text_or(wanted.mapping, "");
    preset.x = grid_axis(wanted.x);
    preset.y = grid_axis(wanted.y);
    preset.z = grid_axis(wanted.z);
    preset.ocean_faces = positions("ocean_faces", wanted.ocean_faces, wanted.ocean_face_count);
    preset.land_faces = positions("land_faces", wanted.land_faces, wanted.land_face_count);
    preset.urban_faces = positions("urban_faces", wanted.urban_faces, wanted.urban_face_count);
    preset.pressures_hpa = positions("pressures_hpa", wanted.pressures_hpa, wanted.pressure_count);
    preset.process = wanted.process;
    preset.has_boundary = wanted.has_boundary != 0;
    return preset;
}

void give(const penstock::HistoryFacts& facts, penstock_history_facts& out) {
    out.steps_ended = facts.steps_ended;
    out.steps_written = facts.steps_written;
    out.steps_published = facts.steps_published;
    out.step_bytes = facts.step_bytes;
    out.slot_bytes = facts.slot_bytes;
    out.put_seconds = facts.put_seconds;
    out.wait_seconds = facts.wait_seconds;
    out.write_seconds = facts.write_seconds;
    if (out.struct_size >= sizeof out) {
        out.stored_bytes = facts.stored_bytes;
        out.encode_seconds = facts.encode_seconds;
    }
    if (out.evidence != nullptr) give_text(out.evidence, facts.last.to_json());
}

}  // namespace

extern "C" {

int penstock_history_open(const penstock_context* context, const char* name, const penstock_history_options* options,
                          penstock_history** history, penstock_error* error) {
    return guarded("open history", error, [&] {
        give_handle(history, [&] {
            return penstock::History(opened(context), &required("the file name", name), history_options(options));
        });
    });
}

int penstock_history_define(penstock_history* history, const penstock_history_variable* variable,
                            penstock_error* error) {
    return guarded("define", error, [&] { opened(history).define(history_variable(variable)); });
}

int penstock_history_define_constant(penstock_history* history, const penstock_history_constant* constant,
                                     penstock_error* error) {
    return guarded("define", error, [&] { opened(history).define_constant(history_constant(constant)); });
}

int penstock_history_set_attribute(penstock_history* history, const char* variable, const penstock_attribute* attribute,
                                   penstock_error* error) {
    return guarded("set attribute", error,
                   [&] { opened(history).set_attribute(history_attribute(attribute), text_or(variable, "")); });
}

int penstock_history_use_preset(penstock_history* history, const penstock_history_preset* preset,
                                penstock_error* error) {
    return guarded("use preset", error, [&] { opened(history).use_preset(history_preset(preset)); });
}

int penstock_history_begin(penstock_history* history, penstock_error* error) {
    return guarded("begin", error, [&] { opened(history).begin(); });
}

int penstock_history_digest(const penstock_history* history, uint64_t* digest, penstock_error* error) {
    return guarded("sum history", error, [&] { required("the digest", digest) = opened(history).digest(); });
}

int penstock_history_split(uint64_t length, uint32_t processes, uint32_t process, uint64_t* start, uint64_t* shape,
                           penstock_error* error) {
    return guarded("split history", error, [&] {
        const penstock::HistoryShare share = penstock::history_split(length, processes, process);
        required("the start", start) = share.start;
        required("the shape", shape) = share.shape;
    });
}

int penstock_history_cuts(penstock_history* history, uint64_t** cuts, uint64_t* count, penstock_error* error) {
    return guarded("cut", error, [&] {
        const std::span<std::uint64_t> all = opened(history).cuts();
        required("the cuts", cuts) = all.data();
        required("their count", count) = all.size();
    });
}

int penstock_history_coverage(penstock_history* history, uint64_t** sums, uint64_t* count, penstock_error* error) {
    return guarded("cover", error, [&] {
        const std::span<std::uint64_t> all = opened(history).coverage();
        required("the sums", sums) = all.data();
        required("their count", count) = all.size();
    });
}

int penstock_history_publish(penstock_history* history, uint64_t steps, penstock_error* error) {
    return guarded("publish", error, [&] { opened(history).publish(steps); });
}

int penstock_history_use_stream(penstock_history* history, void* stream, penstock_error* error) {
    return guarded("use stream", error, [&] { opened(history).use_stream(reinterpret_cast<std::uintptr_t>(stream)); });
}

int penstock_history_put(penstock_history* history, const char* variable, const void* data, penstock_error* error) {
    return guarded("put", error, [&] { opened(history).put(&required("the name of the variable", variable), data); });
}

int penstock_history_check_step(penstock_history* history, double time, penstock_error* error) {
    return guarded("end step", error, [&] { opened(history).check_step(time); });
}

int penstock_history_drop_step(penstock_history* history, penstock_error* error) {
    return guarded("drop step", error, [&] { opened(history).drop_step(); });
}

int penstock_history_end_step(penstock_history* history, double time, penstock_error* error) {
    return guarded("end step", error, [&] { opened(history).end_step(time); });
}

int penstock_history_wait(penstock_history* history, penstock_error* error) {
    return guarded("wait", error, [&] { opened(history).wait(); });
}

int penstock_history_describe(const penstock_history* history, penstock_history_facts* facts, penstock_error* error) {
    return guarded("describe history", error, [&] {
        penstock_history_facts& out = required("penstock_history_facts", facts);
        penstock::c::check_struct("penstock_history_facts", facts, {out.struct_size, kFirstFacts, out.struct_size});
        give(opened(history).facts(), out);
    });
}

int penstock_history_close(penstock_history* history, penstock_error* error) {
    return guarded("close history", error, [&] {
        opened(history);
        const std::unique_ptr<penstock_history> gone(history);
        gone->value.close();
    });
}

void penstock_history_abandon(penstock_history* history) { free_handle(history); }

}  // extern "C"
