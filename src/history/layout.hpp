// What a history's definitions mean: the schema of its file, and for each variable the pack from memory into a slot.
//
// Pure: no device, no file, no memory is touched. Names of dimensions and their lengths are joined here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/create/schema.hpp"
#include "penstock/box.hpp"
#include "penstock/history.hpp"
#include "penstock/pack.hpp"

namespace penstock::history {

inline constexpr std::size_t kMostFieldRank = kPackDimensions;

// Bytes of a field that lie one behind the other in its slot and in its variable.
struct FieldRun {
    std::uint64_t slot_offset = 0;
    std::uint64_t file_offset = 0;  // from the place of the variable
    std::uint64_t bytes = 0;
};

// How a field comes into its slot. Pointers of the pack are null, and the caller sets them.
struct FieldLayout {
    std::string name;
    HistoryStatistic statistic = HistoryStatistic::none;
    bool is_packed = true;         // false: elements move as they are, by `box`
    Pack pack{};                   // from memory to the slot, or to what is summed
    Pack finish{};                 // of a statistic: from what was summed to the slot
    Box box{};                     // of elements that are not converted
    std::uint64_t sum_bytes = 0;   // of what is summed; 0: nothing is
    std::size_t variable = 0;      // its number in the schema
    bool is_whole = true;          // false: other processes write parts of the variable
    std::vector<FieldRun> runs{};  // of one that is not whole
    std::uint64_t bytes = 0;       // in the slot

    // The array in memory, halo included. Bytes count from the pointer that the caller gives.
    std::vector<std::uint64_t> extents{};
    std::vector<std::uint64_t> halo_low{};  // one for each dimension
    std::vector<std::size_t> order{};       // the axis in memory of each axis in the file
    std::uint64_t item_bytes = 0;
    std::int64_t first_bytes = 0;    // to the first element that is written
    std::int64_t lowest_bytes = 0;   // to the lowest address of an element
    std::uint64_t memory_bytes = 0;  // from there to the end of the highest element; 0: nothing is written
};

struct HistoryLayout {
    formats::FileSchema schema;  // variable 0 is the time
    std::vector<FieldLayout> fields;
    bool has_bounds = false;  // variable 1 is the bounds of the intervals
};

struct Definitions {
    std::vector<HistoryVariable> variables{};
    std::vector<HistoryConstant> constants{};
    std::vector<HistoryAttribute> attributes{};
};

// `swap`: the file has the other order of bytes than this machine. Throws Error{invalid_argument} with the name of what
// is wrong.
HistoryLayout plan_history(const Definitions& definitions, const HistoryOptions& options, bool swap);

// The same field in an array with other strides, which may be 0 or negative. Throws Error{invalid_argument}.
FieldLayout with_strides(FieldLayout field, std::span<const std::int64_t> strides_bytes);

}  // namespace penstock::history
