// See chunk_grid.hpp.
#include "formats/hdf5/index/chunk_grid.hpp"

#include <algorithm>

#include "formats/hdf5/structure.hpp"

namespace penstock::formats {
namespace {

// The number of a cell whose dimensions are taken in this order.
std::uint64_t number_in(const ChunkCounting& grid, std::span<const std::uint64_t> cell,
                        std::span<const std::size_t> order) {
    std::uint64_t number = 0;
    for (const std::size_t axis : order) {
        const std::uint64_t most = grid.most[axis], chunk = grid.chunk[axis];
        // The first dimension's own length does not count.
        if (axis != order.front()) number = checked_product(number, most / chunk + (most % chunk != 0 ? 1 : 0));
        if (__builtin_add_overflow(number, cell[axis], &number)) throw_damaged("a chunk has a number beyond 64 bits");
    }
    return number;
}

}  // namespace

std::uint64_t chunk_number(const ChunkCounting& grid, std::span<const std::uint64_t> cell) {
    std::vector<std::size_t> order;
    for (std::size_t axis = 0; axis < cell.size(); ++axis) order.push_back(axis);
    return number_in(grid, cell, order);
}

std::uint64_t growing_chunk_number(const ChunkCounting& grid, std::span<const std::uint64_t> cell) {
    const auto grows = std::find(grid.most.begin(), grid.most.end(), kUnlimitedExtent);
    if (grows == grid.most.end()) throw_damaged("an index of chunks that grow is of a dataset that does not");
    std::vector<std::size_t> order{static_cast<std::size_t>(grows - grid.most.begin())};
    for (std::size_t axis = 0; axis < cell.size(); ++axis) {
        if (axis != order.front()) order.push_back(axis);
    }
    return number_in(grid, cell, order);
}

bool is_at_edge(const ChunkCounting& grid, std::span<const std::uint64_t> cell) {
    for (std::size_t axis = 0; axis < cell.size(); ++axis) {
        if (grid.extents[axis] - cell[axis] * grid.chunk[axis] < grid.chunk[axis]) return true;
    }
    return false;
}

}  // namespace penstock::formats
