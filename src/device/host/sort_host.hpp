// Sorts into cells and gathers by the CPU: for the emulated device, and for plain host memory.
#pragma once

#include "penstock/sort/cell_sort.hpp"

namespace penstock::device {

// Throws Error{out_of_memory} where the cells, or the cell of each particle, find no room.
CellsFound sort_cells_on_host(const CellSort& sort);
// Requires: numbers of the order are below source_rows.
void gather_on_host(const RowGather& gather) noexcept;

}  // namespace penstock::device
