// What every device checks of a sort into cells, and the form in which lanes read its grid.
#pragma once

#include <cstdint>
#include <vector>

#include "device/sort/cell_lanes.hpp"
#include "penstock/sort/cell_sort.hpp"

namespace penstock::device {

// Throws Error{invalid_argument} of a grid that makes no sense, Error{unsupported} of 2^32 particles to sort.
CellLanes lanes_of(const CellSort& sort);
std::uint64_t count_of(const CellLanes& grid) noexcept;  // of its cells

std::vector<SortedCell> closed(const std::vector<OpenRun>& runs);

}  // namespace penstock::device
