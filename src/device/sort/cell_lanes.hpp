// What one lane does to sort particles into cells: in which cell one lies, and the bounds of positions as integers
// whose order is that of the numbers. The CPU and the GPU share this code, so that they find the same bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "penstock/host_device.hpp"

namespace penstock::device {

// A grid in the form that a kernel reads.
struct CellLanes {
    std::uint64_t cells[3];
    double widths[3];
};

struct LanePosition {
    double at[3];
};

template <class Number>
PENSTOCK_HOST_DEVICE inline LanePosition position_of(const Number* positions, std::uint64_t particle) {
    const Number* first = positions + 3 * particle;
    return {{static_cast<double>(first[0]), static_cast<double>(first[1]), static_cast<double>(first[2])}};
}

// The difference is 0 of finite numbers alone.
PENSTOCK_HOST_DEVICE inline bool is_finite(const LanePosition& position) {
    return position.at[0] - position.at[0] == 0 && position.at[1] - position.at[1] == 0 &&
           position.at[2] - position.at[2] == 0;
}

PENSTOCK_HOST_DEVICE inline std::uint32_t cell_of(const CellLanes& grid, const LanePosition& position) {
    std::uint64_t cell = 0;
    for (int i = 0; i < 3; ++i) {
        const double at = position.at[i] / grid.widths[i];
        const std::uint64_t last = grid.cells[i] - 1;
        const double limit = static_cast<double>(last);
        const std::uint64_t here = !(at > 0) ? 0 : static_cast<std::uint64_t>(at < limit ? at : limit);
        cell = cell * grid.cells[i] + here;
    }
    return static_cast<std::uint32_t>(cell);
}

// A number as an integer: the greater one is the greater integer. Negative zero becomes zero.
PENSTOCK_HOST_DEVICE inline std::uint64_t ordered_bits(double number) {
    const double plain = number + 0.0;
    std::uint64_t bits = 0;
    memcpy(&bits, &plain, sizeof bits);
    return bits >> 63 != 0 ? ~bits : bits | std::uint64_t{1} << 63;
}
PENSTOCK_HOST_DEVICE inline double number_of(std::uint64_t ordered) {
    const std::uint64_t bits = ordered >> 63 != 0 ? ordered & ~(std::uint64_t{1} << 63) : ~ordered;
    double number = 0;
    memcpy(&number, &bits, sizeof number);
    return number;
}

// A SortedCell while lanes find it: its end in place of the count, and bounds as ordered integers.
struct OpenRun {
    unsigned long long first, end;
    unsigned long long least[3], most[3];
};

}  // namespace penstock::device
