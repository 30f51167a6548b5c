// CellSort: which particles lie in which cell of a grid, and the order that puts those of a cell together, as data. A
// RowGather then puts the rows of an array into that order.
//
// A cell is found as SWIFT finds it: a position is divided by the width of a cell, rounded down, and brought to the
// nearest cell where it lies outside; the last dimension is the fastest. Particles of one cell keep their order. All
// results have the same bits on every device: the bounds of a cell have no negative zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

// Requires: there are 1 to 4096 cells along each dimension and fewer than 2^31 in all, and widths are above 0.
struct CellSort {
    const void* positions = nullptr;  // three numbers of each particle
    std::uint64_t particles = 0;
    bool is_double = true;            // the numbers are float64; else float32
    std::array<std::uint64_t, 3> cells{};  // along each dimension
    std::array<double, 3> widths{};        // of a cell
    // Becomes the number of each particle, in the order of cells: the particles are fewer than 2^32. Null: the
    // particles lie in that order already, which is checked.
    std::uint32_t* order = nullptr;
};

// The particles of a cell: where they begin in the order of cells, how many they are, and the bounds of their
// positions.
struct SortedCell {
    std::uint64_t first = 0;  // 0 where the cell is empty
    std::uint64_t count = 0;
    double least[3];  // of an empty cell: the greatest number
    double most[3];   // of an empty cell: the lowest number
};

struct CellsFound {
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::uint64_t first_bad = kNone;        // the first particle whose position is not finite
    double bad_position[3]{};               // where that one is said to lie
    std::uint64_t first_unsorted = kNone;   // without an order: the first particle of a lower cell than the one before
    std::uint64_t cell = 0, cell_before = 0;  // where those two lie
    std::vector<SortedCell> runs{};            // of each cell; empty where a particle is bad or unsorted
};

// Row i of the destination becomes row order[i] of the source. The destination overlaps neither.
struct RowGather {
    void* destination = nullptr;
    const void* source = nullptr;
    const std::uint32_t* order = nullptr;
    std::uint64_t rows = 0;         // of the destination, and numbers of the order
    std::uint64_t source_rows = 0;  // each number of the order is below it
    std::uint64_t row_bytes = 0;
};

}  // namespace penstock
