// Which bytes of which chunks a box of elements needs, and where they go: a plan as arithmetic, without a device.
//
// A StoredGrid says where elements lie: chunks of one shape, and in each of them a stride for each dimension, so that C
// order, Fortran order and records between those of others are one case. for_each_part() gives what each chunk has of
// a box; cut_part() cuts that into spans of the chunk, which storage delivers in one piece. What must stay true: the
// spans of all parts hold each element of the box once, and the time is bounded by the elements of the box, not by the
// chunks of the dataset.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/layout/layout.hpp"
#include "penstock/box.hpp"

namespace penstock::data {

// What a format says of the places of a dataset's elements.
struct StoredGrid {
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> chunk_shape;  // at least 1 each; chunks at the edge are whole
    std::vector<std::int64_t> strides;      // bytes from an element of a chunk to its neighbour in each dimension
    std::uint64_t item_bytes = 1;
};

using Strides = std::array<std::int64_t, kMostDimensions>;

// Strides of elements in C order without gaps.
std::vector<std::int64_t> c_strides(std::span<const std::int64_t> shape, std::uint64_t item_bytes);
// Throws Error{invalid_argument} of numbers that describe no dataset, or chunks whose elements overlap.
void check_grid(const StoredGrid& grid);
// Requires: check_grid() found nothing.
std::uint64_t chunk_bytes(const StoredGrid& grid);

// Elements of a dataset, and where they go.
struct Selection {
    ElementBox box;
    Strides memory_strides{};  // bytes from one element of the box to the next
};

// Throws Error{invalid_argument} where the box leaves the dataset.
void check_box(const StoredGrid& grid, const ElementBox& box);

// What one chunk has of a selection: a grid of elements.
struct SelectedPart {
    std::array<std::int64_t, kMostDimensions> cell{};  // the chunk's place in the grid of chunks
    std::uint64_t chunk_offset = 0;                    // bytes from the chunk's first element to the part's
    std::int64_t memory_offset = 0;                    // bytes from the box's first element to the part's
    std::size_t dimensions = 0;
    std::array<BoxDimension, kMostDimensions> grid{};  // source: in the chunk; destination: in memory
};

// Requires: check_grid() and check_box() found nothing.
void for_each_part(const StoredGrid& grid, const Selection& selection,
                   const std::function<void(const SelectedPart&)>& take);

struct CutLimits {
    std::uint64_t gap_bytes = 0;       // bytes between wanted ones that are moved with them
    std::uint64_t straight_bytes = 0;  // runs of so many go to their place by themselves
    std::uint64_t scratch_bytes = 0;   // longest span that is not straight; at least an item
    bool allow_straight = true;
};

// Consecutive bytes of a chunk with the wanted elements in it.
struct ChunkSpan {
    std::uint64_t chunk_offset = 0;
    std::uint64_t bytes = 0;
    std::int64_t memory_offset = 0;        // of the first element
    bool straight = false;                 // all bytes are wanted, and lie so in memory
    std::span<const BoxDimension> grid{};  // not straight: elements from the first one on; as in SelectedPart
};

void cut_part(const SelectedPart& part, std::uint64_t item_bytes, const CutLimits& limits,
              const std::function<void(const ChunkSpan&)>& take);

}  // namespace penstock::data
