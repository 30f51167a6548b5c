// What a process writes of a step, part by part: all of a variable, its box of one, or the blocks of a store that its
// box is made of.
//
// Pure. The grid of a store is regular, and each block is a file of one process. So the boxes of all processes begin
// and end at blocks: a cut is a number of whose multiples a box begins and ends, along one dimension, and a block is as
// long as the greatest common divisor of the cuts of all processes. All boxes are in the order of the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/create/schema.hpp"
#include "penstock/history.hpp"

namespace penstock::history {

struct FieldLayout;
struct HistoryLayout;

inline constexpr std::uint64_t kMostBlocks = 16;  // of one box: each is a file, and all are open at once

// Bytes of a field that lie one behind the other in its slot and in its file.
struct FieldRun {
    std::uint64_t slot_offset = 0;
    std::uint64_t file_offset = 0;  // from the place of the part
    std::uint64_t bytes = 0;
};

// What this process writes of a field in one place.
struct FieldPart {
    std::size_t place = 0;                        // its number among the places of a step
    std::vector<FieldRun> runs{};                 // empty: all of the field
    std::vector<std::uint64_t> first{}, count{};  // elements of the field that are in it; empty: all
};

// Elements of a variable.
struct VariableBox {
    std::vector<std::uint64_t> whole;  // of the variable
    std::vector<std::uint64_t> first;
    std::vector<std::uint64_t> count;
    std::vector<std::string> names{};  // of the dimensions, for errors
    std::vector<std::size_t> order{};  // the axis in memory of each axis

    bool is_empty() const;
};

// A block that a box has.
struct BoxBlock {
    std::vector<std::uint64_t> number{};          // in the grid
    std::vector<std::uint64_t> first{}, count{};  // in the box
};

// Where elements that lie as a box in a slot go in a file, where the array has another shape.
struct BoxMove {
    std::vector<std::uint64_t> count;
    std::vector<std::uint64_t> slot_shape, slot_first;
    std::vector<std::uint64_t> file_shape, file_first;
    std::uint64_t item_bytes = 0;
};

std::vector<FieldRun> runs_of(const BoxMove& move);

// For each dimension; 0: any number.
std::vector<std::uint64_t> cuts_of(const VariableBox& box);
// `cuts`: of all processes. Throws Error{invalid_argument} where they are not, and where the box would be more than
// kMostBlocks. `what`: the variable, for errors.
std::vector<std::uint64_t> block_of(const std::string& what, const VariableBox& box,
                                    std::span<const std::uint64_t> cuts);
std::vector<BoxBlock> blocks_in(const VariableBox& box, std::span<const std::uint64_t> block);
// Chunks that are whole in each block, where a variable has several: as near to these as there are.
std::vector<std::uint64_t> chunk_within(std::span<const std::uint64_t> chunk, std::span<const std::uint64_t> block,
                                        std::span<const std::uint64_t> whole);

// Gives the field its parts, and a layout of a store their places. `box`: of this process. Requires: the variable is in
// the schema of the layout.
void add_parts(HistoryLayout& layout, FieldLayout& field, const VariableBox& box, const HistoryOptions& options);

// Gives fields their offsets in a slot: what follows in the file follows in the slot, so that it is written as one.
// `places`: of a step in one file; none where they depend on how small it becomes, or where there are many files.
// Returns the bytes.
std::uint64_t lay_out_slot(std::vector<FieldLayout>& fields, const std::vector<formats::DataPlace>& places);

}  // namespace penstock::history
