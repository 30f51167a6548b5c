// See sort_host.hpp. Particles are counted into cells, and then take their places one behind the other.
#include "device/host/sort_host.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "device/sort/cell_plan.hpp"
#include "penstock/error.hpp"

namespace penstock::device {
namespace {

// Returns whether the particle may be counted: nothing is wrong with it.
bool is_right(const LanePosition& here, std::uint64_t particle, std::uint64_t cell, CellsFound& found) {
    if (!is_finite(here)) {
        found.first_bad = particle;
        std::copy_n(here.at, 3, found.bad_position);
        return false;
    }
    if (cell >= found.cell_before) return true;
    found.first_unsorted = particle;
    found.cell = cell;
    return false;
}

void count(const LanePosition& here, OpenRun& run) {
    ++run.end;
    for (int i = 0; i < 3; ++i) {
        const unsigned long long bits = ordered_bits(here.at[i]);
        run.least[i] = std::min(run.least[i], bits);
        run.most[i] = std::max(run.most[i], bits);
    }
}

// Begins each run where the one before it ends. Empty ones stay at 0.
void place(std::vector<OpenRun>& runs) {
    std::uint64_t at = 0;
    for (OpenRun& run : runs) {
        if (run.end == 0) continue;
        run.first = at;
        run.end += at;
        at = run.end;
    }
}

template <class Number>
CellsFound sorted(const CellSort& sort) {
    const CellLanes grid = lanes_of(sort);
    constexpr double kGreatest = std::numeric_limits<double>::max();
    const unsigned long long lowest = ordered_bits(-kGreatest), greatest = ordered_bits(kGreatest);
    std::vector<OpenRun> runs(count_of(grid), {0, 0, {greatest, greatest, greatest}, {lowest, lowest, lowest}});
    std::vector<std::uint32_t> cells(sort.order == nullptr ? 0 : sort.particles);
    const auto* positions = static_cast<const Number*>(sort.positions);
    CellsFound found;
    for (std::uint64_t i = 0; i < sort.particles; ++i) {
        const LanePosition here = position_of(positions, i);
        const std::uint32_t cell = cell_of(grid, here);
        if (!is_right(here, i, cell, found)) return found;
        count(here, runs[cell]);
        if (sort.order == nullptr) found.cell_before = cell;
        if (sort.order != nullptr) cells[i] = cell;
    }
    place(runs);
    found.cell_before = 0;
    found.runs = closed(runs);
    if (sort.order == nullptr) return found;
    for (std::uint64_t i = 0; i < sort.particles; ++i) {
        sort.order[runs[cells[i]].first++] = static_cast<std::uint32_t>(i);
    }
    return found;
}

template <std::size_t kBytes>
void gather_rows(const RowGather& gather) noexcept {
    const std::size_t bytes = kBytes != 0 ? kBytes : gather.row_bytes;
    auto* to = static_cast<std::byte*>(gather.destination);
    const auto* from = static_cast<const std::byte*>(gather.source);
    for (std::uint64_t i = 0; i < gather.rows; ++i) {
        std::memcpy(to + i * bytes, from + gather.order[i] * bytes, bytes);
    }
}

}  // namespace

CellsFound sort_cells_on_host(const CellSort& sort) {
    try {
        return sort.is_double ? sorted<double>(sort) : sorted<float>(sort);
    } catch (const std::bad_alloc&) {
        const std::uint64_t cells = sort.cells[0] * sort.cells[1] * sort.cells[2];
        const std::uint64_t bytes = cells * (sizeof(OpenRun) + sizeof(SortedCell)) + 4 * sort.particles;
        throw Error(ErrorCode::out_of_memory, "sort into cells",
                    std::to_string(bytes) + " bytes of host memory, for " + std::to_string(cells) + " cells and " +
                        std::to_string(sort.particles) + " particles",
                    "give fewer cells, or release memory");
    }
}

void gather_on_host(const RowGather& gather) noexcept {
    switch (gather.row_bytes) {
        case 4: return gather_rows<4>(gather);
        case 8: return gather_rows<8>(gather);
        case 12: return gather_rows<12>(gather);
        case 24: return gather_rows<24>(gather);
        default: return gather_rows<0>(gather);
    }
}

}  // namespace penstock::device
