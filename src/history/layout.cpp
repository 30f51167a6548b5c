// See layout.hpp. First the checks, then dimensions and attributes of the schema, then packs.
#include "history/layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "formats/create/check_schema.hpp"
#include "formats/faults.hpp"
#include "history/attributes.hpp"
#include "history/compression.hpp"
#include "history/definitions/defined_names.hpp"
#include "history/target/history_target.hpp"
#include "history/definitions/time_axis.hpp"

namespace penstock::history {
namespace {

using formats::ElementType;
using formats::FileSchema;
using formats::NewVariable;
using formats::shown;

bool has_statistic(const Definitions& all) {
    return std::any_of(all.variables.begin(), all.variables.end(),
                       [](const HistoryVariable& one) { return one.statistic != HistoryStatistic::none; });
}

std::optional<PackNumber> number_of(const ElementType& type) {
    constexpr std::array<std::pair<const char*, PackNumber>, 4> numbers{{{"float32", PackNumber::float32},
                                                                         {"float64", PackNumber::float64},
                                                                         {"int32", PackNumber::int32},
                                                                         {"int64", PackNumber::int64}}};
    for (const auto& one : numbers) {
        if (type.name == one.first) return one.second;
    }
    return std::nullopt;
}

// The number of the dimension, which is made where there is none of that name.
std::size_t dimension_of(FileSchema& schema, const std::string& owner, const std::string& name, std::uint64_t length) {
    for (std::size_t i = 0; i < schema.dimensions.size(); ++i) {
        const auto& one = schema.dimensions[i];
        if (one.name != name) continue;
        if (one.grows) refuse(owner + " has the dimension " + shown(name), "time is added to every variable by itself");
        if (one.length == length) return i;
        throw other_length(owner, {name, length, false}, one.length);
    }
    schema.dimensions.push_back({name, length, false});
    return schema.dimensions.size() - 1;
}

// The box of this process among those of all.
void check_box(const std::string& what, const HistoryVariable& one) {
    if (one.global_shape.empty() && one.start.empty()) return;
    if (one.global_shape.size() != one.shape.size() || one.start.size() != one.shape.size()) {
        refuse(what + " has " + std::to_string(one.shape.size()) + " dimensions, " +
                   std::to_string(one.global_shape.size()) + " in global_shape and " +
                   std::to_string(one.start.size()) + " in start",
               "give one for each dimension");
    }
    for (std::size_t axis = 0; axis < one.shape.size(); ++axis) {
        const std::uint64_t all = one.global_shape[axis];
        if (one.shape[axis] <= all && one.start[axis] <= all - one.shape[axis]) continue;
        refuse(what + " has " + std::to_string(one.shape[axis]) + " elements from " + std::to_string(one.start[axis]) +
                   " on, of " + std::to_string(all) + " along " + shown(one.dimensions[axis]),
               "let each process give a box inside of global_shape");
    }
}

void check_lists(const std::string& what, const HistoryVariable& one) {
    const std::size_t rank = one.shape.size();
    const auto check = [&](const char* list, std::size_t size, bool may_be_empty) {
        if (size == rank || (may_be_empty && size == 0)) return;
        refuse(what + " has " + std::to_string(rank) + " dimensions and " + std::to_string(size) + " " + list,
               "give one for each dimension");
    };
    if (rank > kMostFieldRank)
        refuse(what + " has " + std::to_string(rank) + " dimensions", "use at most 6, without time");
    check("names of dimensions", one.dimensions.size(), false);
    check("halo_low", one.halo_low.size(), true);
    check("halo_high", one.halo_high.size(), true);
    check("strides_bytes", one.strides_bytes.size(), true);
    check("file_dimensions", one.file_dimensions.size(), true);
    check_box(what, one);
    if (std::any_of(one.strides_bytes.begin(), one.strides_bytes.end(), [](std::int64_t s) { return s <= 0; })) {
        refuse(what + " has a stride that is not positive", "strides go from an element to its neighbour, in bytes");
    }
}

std::uint64_t halo(const std::vector<std::uint64_t>& widths, std::size_t axis) {
    return widths.empty() ? 0 : widths[axis];
}

// The axis in memory of each axis in the file.
std::vector<std::size_t> file_order(const std::string& what, const HistoryVariable& one) {
    std::vector<std::size_t> order(one.shape.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (one.file_dimensions.empty()) return order;
    if (!std::is_permutation(one.file_dimensions.begin(), one.file_dimensions.end(), one.dimensions.begin())) {
        refuse(what + " has other dimensions in the file than in memory", "give the same names in another order");
    }
    std::vector<std::string> left = one.dimensions;  // two may have one name: each is taken once
    for (std::size_t axis = 0; axis < order.size(); ++axis) {
        const auto found = std::find(left.begin(), left.end(), one.file_dimensions[axis]);
        order[axis] = static_cast<std::size_t>(found - left.begin());
        found->clear();
    }
    return order;
}

// Strides of the array in memory, halo included.
std::vector<std::int64_t> memory_strides(const std::string& what, const HistoryVariable& one, std::uint64_t item) {
    if (!one.strides_bytes.empty()) return one.strides_bytes;
    std::vector<std::int64_t> strides(one.shape.size());
    std::uint64_t stride = item;
    for (std::size_t axis = strides.size(); axis-- > 0;) {
        strides[axis] = static_cast<std::int64_t>(stride);
        const std::uint64_t extent = one.shape[axis] + halo(one.halo_low, axis) + halo(one.halo_high, axis);
        if (__builtin_mul_overflow(stride, extent, &stride) || stride >> 60 != 0) {
            refuse(what + " is larger than any memory", "check its shape");
        }
    }
    return strides;
}

struct NumberTypes {
    ElementType from, to;
};

NumberTypes numbers_of(const std::string& what, const HistoryVariable& one) {
    NumberTypes found{type_named(what, one.source_dtype.empty() ? one.dtype : one.source_dtype),
                      type_named(what, one.dtype)};
    const bool as_it_is = found.from.name == found.to.name;
    const auto from = number_of(found.from), to = number_of(found.to);
    const bool changes = !as_it_is || one.statistic != HistoryStatistic::none || one.keep_bits != 0;
    if (changes && (!from || !to || !converts(*from, *to))) {
        refuse(what + " cannot become " + found.to.name + " from " + found.from.name +
                   (as_it_is ? " by a statistic or fewer bits" : ""),
               "float32 and float64 take float32, float64, int32 and int64; other types are written as they are");
    }
    if (one.statistic == HistoryStatistic::mean && !is_float(*to)) {
        refuse(what + " has a mean of dtype " + found.to.name, "write it as float32 or float64");
    }
    if (one.keep_bits != 0 && (!is_float(*to) || one.keep_bits > mantissa_bits(*to))) {
        refuse(what + " keeps " + std::to_string(one.keep_bits) + " bits of " + found.to.name,
               "keep 1 to 23 bits of float32, 1 to 52 of float64, or 0 for all");
    }
    return found;
}

// Both sides of a grid: extents in the order of the file, strides there and in memory.
struct FieldGrid {
    std::uint32_t rank = 0;
    std::array<std::uint64_t, kMostFieldRank> extents{};
    std::array<std::int64_t, kMostFieldRank> memory{};  // of what was summed
};

std::array<std::int64_t, kMostFieldRank> dense(const FieldGrid& grid, std::uint64_t item) {
    std::array<std::int64_t, kMostFieldRank> strides{};
    auto stride = static_cast<std::int64_t>(item);
    for (std::size_t axis = grid.rank; axis-- > 0;) {
        strides[axis] = stride;
        stride *= static_cast<std::int64_t>(grid.extents[axis]);
    }
    return strides;
}

Pack pack_of(const FieldGrid& grid, PackNumber from, PackNumber to) {
    Pack pack;
    pack.from = from;
    pack.to = to;
    pack.dimensions = grid.rank;
    pack.extents = grid.extents;
    pack.destination_strides = dense(grid, bytes_of(to));
    pack.source_strides = grid.memory;
    return pack;
}

// Sums are float64; the smallest and the largest are kept as they came.
void plan_statistic(FieldLayout& field, const FieldGrid& grid, PackNumber from, PackNumber to) {
    const PackNumber kept = field.statistic == HistoryStatistic::mean ? PackNumber::float64 : from;
    field.pack = pack_of(grid, from, kept);
    field.sum_bytes = field.pack.bytes();
    FieldGrid plain = grid;
    plain.memory = dense(grid, bytes_of(kept));
    field.finish = pack_of(plain, kept, to);
}

FieldLayout plan_field(const std::string& what, const HistoryVariable& one, bool swap) {
    FieldLayout field;
    field.name = one.name;
    field.statistic = one.statistic;
    const NumberTypes numbers = numbers_of(what, one);
    field.order = file_order(what, one);
    field.item_bytes = numbers.from.item_bytes;
    FieldGrid grid;
    grid.rank = static_cast<std::uint32_t>(one.shape.size());
    for (std::size_t axis = 0; axis < one.shape.size(); ++axis) {
        grid.extents[axis] = one.shape[field.order[axis]];
        field.halo_low.push_back(halo(one.halo_low, axis));
        field.extents.push_back(one.shape[axis] + halo(one.halo_low, axis) + halo(one.halo_high, axis));
    }
    field.bytes = numbers.to.item_bytes;
    for (const std::uint64_t extent : one.shape) field.bytes *= extent;
    field.is_whole = one.global_shape.empty();
    field.box.assign(grid.extents.begin(), grid.extents.begin() + grid.rank);
    const auto from = number_of(numbers.from), to = number_of(numbers.to);
    field.is_packed = from && to;
    if (!field.is_packed) {
        field.move.item_bytes = numbers.to.item_bytes;
        field.move.swap_bytes = swap && numbers.to.word_bytes > 1 ? numbers.to.word_bytes : 0;
        field.move.dimensions = grid.rank;
        field.move.extents = grid.extents;
        field.move.destination_strides = dense(grid, numbers.to.item_bytes);
    } else {
        if (one.statistic != HistoryStatistic::none) {
            plan_statistic(field, grid, *from, *to);
        } else {
            field.pack = pack_of(grid, *from, *to);
        }
        Pack& last = one.statistic == HistoryStatistic::none ? field.pack : field.finish;
        last.swap = swap;
        last.keep_bits = one.keep_bits == mantissa_bits(*to) ? 0 : one.keep_bits;
    }
    return with_strides(std::move(field), memory_strides(what, one, numbers.from.item_bytes));
}

void add_constant(HistoryLayout& layout, const HistoryConstant& one) {
    const std::string what = "variable " + shown(one.name);
    if (one.dimensions.size() != one.shape.size()) {
        refuse(what + " has " + std::to_string(one.shape.size()) + " extents and " +
                   std::to_string(one.dimensions.size()) + " names of dimensions",
               "give one for each dimension");
    }
    NewVariable made{one.name, type_named(what, one.dtype), {}, {}, one.values};
    for (std::size_t axis = 0; axis < one.shape.size(); ++axis) {
        made.dimensions.push_back(dimension_of(layout.schema, what, one.dimensions[axis], one.shape[axis]));
    }
    for (const HistoryAttribute& given : one.attributes) made.attributes.push_back(attribute_of(what, given));
    if (made.values.empty()) refuse(what + " has no values", "a constant is given whole");
    layout.schema.variables.push_back(std::move(made));
}

VariableBox box_of(const HistoryVariable& one, const FieldLayout& field, const FileSchema& schema,
                   const NewVariable& made) {
    VariableBox box{formats::step_shape(schema, made), {}, field.box, {}, field.order};
    for (const std::size_t axis : field.order) {
        box.first.push_back(one.start.empty() ? 0 : one.start[axis]);
        box.names.push_back(one.dimensions[axis]);
    }
    return box;
}

// Divides a variable into the blocks that all processes agreed on. Cuts follow each other as the variables do.
void add_block(HistoryLayout& layout, NewVariable& made, const VariableBox& box, const Definitions& definitions) {
    const std::vector<std::uint64_t> own = cuts_of(box);
    const std::size_t first = layout.cuts.size();
    layout.cuts.insert(layout.cuts.end(), own.begin(), own.end());
    if (!definitions.cuts) return;
    const auto agreed = std::span(*definitions.cuts).subspan(first, own.size());
    made.block = block_of("variable " + shown(made.name), box, agreed);
}

struct HistoryPlan {
    const Definitions& definitions;
    const HistoryOptions& options;
    bool swap;
};

// A box that is all of it is no box where there is one process: its data may be compressed then.
HistoryVariable without_whole_box(HistoryVariable one, const HistoryOptions& options) {
    if (options.processes != 1 || one.shape != one.global_shape) return one;
    one.global_shape.clear();
    one.start.clear();
    return one;
}

void add_variable(HistoryLayout& layout, const HistoryVariable& given, const HistoryPlan& plan) {
    const HistoryOptions& options = plan.options;
    constexpr std::array<const char*, 4> methods{"", "time: mean", "time: minimum", "time: maximum"};
    const std::string what = "variable " + shown(given.name);
    check_lists(what, given);
    const HistoryVariable one = without_whole_box(given, options);
    FieldLayout field = plan_field(what, one, plan.swap);
    NewVariable made{one.name, type_named(what, one.dtype), {0}, {}, {}};
    for (const std::size_t axis : field.order) {
        const std::uint64_t length = one.global_shape.empty() ? one.shape[axis] : one.global_shape[axis];
        made.dimensions.push_back(dimension_of(layout.schema, what, one.dimensions[axis], length));
    }
    for (const HistoryAttribute& each : one.attributes) made.attributes.push_back(attribute_of(what, each));
    if (one.statistic != HistoryStatistic::none && !has_attribute(one.attributes, "cell_methods")) {
        made.attributes.push_back(
            formats::text_attribute("cell_methods", methods.at(static_cast<std::size_t>(one.statistic))));
    }
    const VariableBox box = box_of(one, field, layout.schema, made);
    const bool is_divided = options.processes > 1 && !field.is_whole && has_blocks(options.format);
    if (is_divided) add_block(layout, made, box, plan.definitions);
    add_compression(made, one, options, box);
    field.variable = layout.schema.variables.size();
    layout.schema.variables.push_back(std::move(made));
    if (!is_divided || plan.definitions.cuts) add_parts(layout, field, box, options);
    layout.fields.push_back(std::move(field));
}

}  // namespace

FieldLayout with_strides(FieldLayout field, std::span<const std::int64_t> strides_bytes) {
    const std::string what = "variable " + shown(field.name);
    if (strides_bytes.size() != field.extents.size()) {
        refuse(what + " has " + std::to_string(field.extents.size()) + " dimensions and " +
                   std::to_string(strides_bytes.size()) + " strides",
               "give one for each dimension");
    }
    constexpr std::int64_t kMostReach = std::int64_t{1} << 60;
    std::int64_t lowest = 0, highest = 0, first = 0;
    for (std::size_t axis = 0; axis < field.extents.size(); ++axis) {
        const std::int64_t stride = strides_bytes[axis];
        std::int64_t reach = 0;
        const bool overflows = field.extents[axis] > static_cast<std::uint64_t>(kMostReach) ||
                               __builtin_mul_overflow(stride, static_cast<std::int64_t>(field.extents[axis]), &reach) ||
                               reach > kMostReach || reach < -kMostReach;
        if (overflows) refuse(what + " is larger than any memory", "check its shape and its strides");
        if (field.extents[axis] == 0) continue;
        reach -= stride;
        (reach < 0 ? lowest : highest) += reach;
        first += stride * static_cast<std::int64_t>(field.halo_low[axis]);
    }
    field.first_bytes = first;
    field.lowest_bytes = lowest;
    field.memory_bytes = field.bytes == 0 ? 0 : static_cast<std::uint64_t>(highest - lowest) + field.item_bytes;
    for (std::size_t axis = 0; axis < field.order.size(); ++axis) {
        (field.is_packed ? field.pack.source_strides : field.move.source_strides)[axis] =
            strides_bytes[field.order[axis]];
    }
    return field;
}

HistoryLayout plan_history(const Definitions& definitions, const HistoryOptions& options, bool swap) {
    HistoryLayout layout;
    layout.has_bounds = definitions.has_bounds || has_statistic(definitions);
    add_time(layout, options, definitions.time_attributes);
    for (const HistoryConstant& one : definitions.constants) add_constant(layout, one);
    for (const HistoryVariable& one : definitions.variables) add_variable(layout, one, {definitions, options, swap});
    if (says_conventions(definitions.attributes, options)) {
        layout.schema.attributes.push_back(formats::text_attribute("Conventions", kConventions));
    }
    for (const HistoryAttribute& one : definitions.attributes) {
        layout.schema.attributes.push_back(attribute_of("the file", one));
    }
    return layout;
}

}  // namespace penstock::history
