// What it costs to sort particles into the cells of a grid, and to gather their fields, on a device: one line each.
#pragma once

#include <cstdint>

#include "penstock/device.hpp"

namespace penstock {

struct CellRoom {
    unsigned char* memory = nullptr;  // of the device, at least a GiB
    unsigned char* pinned = nullptr;
    std::uint64_t pinned_bytes = 0;
};

void measure_cells(Stream& stream, const CellRoom& room);

}  // namespace penstock
