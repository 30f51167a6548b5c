// What a history's definitions mean: the schema of its file, and for each variable the pack from memory into a slot.
//
// Pure: no device, no file, no memory is touched. Names of dimensions and their lengths are joined here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/create/schema.hpp"
#include "formats/create/stores/store_documents.hpp"
#include "history/processes/parts.hpp"
#include "penstock/box.hpp"
#include "penstock/history.hpp"
#include "penstock/pack.hpp"

namespace penstock::history {

inline constexpr std::size_t kMostFieldRank = kPackDimensions;

// How a field comes into its slot. Pointers of the pack are null, and the caller sets them.
struct FieldLayout {
    std::string name;
    HistoryStatistic statistic = HistoryStatistic::none;
    bool is_packed = true;             // false: elements move as they are, by `move`
    Pack pack{};                       // from memory to the slot, or to what is summed
    Pack finish{};                     // of a statistic: from what was summed to the slot
    Box move{};                        // of elements that are not converted
    std::uint64_t sum_bytes = 0;       // of what is summed; 0: nothing is
    std::size_t variable = 0;          // its number in the schema
    bool is_whole = true;              // false: other processes write parts of the variable
    std::vector<FieldPart> parts{};    // that this process writes
    std::vector<std::uint64_t> box{};  // extents in the slot, in the order of the file
    std::uint64_t bytes = 0;           // in the slot
    std::uint64_t slot_offset = 0;     // by lay_out_slot()

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
    // What each place of a step is, in a store. Process 0 has the time in place 0, and bounds in place 1.
    std::vector<formats::StoreBlock> blocks{};
    // This process's, where several write a store: of one variable after the other.
    std::vector<std::uint64_t> cuts{};
};

struct Definitions {
    std::vector<HistoryVariable> variables{};
    std::vector<HistoryConstant> constants{};
    std::vector<HistoryAttribute> attributes{};
    std::vector<HistoryAttribute> time_attributes{};
    bool has_bounds = false;  // of the times, also where no variable has a statistic
    // Of all processes; without them a layout has no parts of fields that are divided into blocks.
    std::optional<std::vector<std::uint64_t>> cuts{};
    // Of all processes, for each variable with global_shape: 0 where their boxes have each element once.
    std::optional<std::vector<std::uint64_t>> coverage{};
};

// `swap`: the file has the other order of bytes than this machine. Throws Error{invalid_argument} with the name of what
// is wrong.
HistoryLayout plan_history(const Definitions& definitions, const HistoryOptions& options, bool swap);

// The same field in an array with other strides, which may be 0 or negative. Throws Error{invalid_argument}.
FieldLayout with_strides(FieldLayout field, std::span<const std::int64_t> strides_bytes);

}  // namespace penstock::history
