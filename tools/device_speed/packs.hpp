// What packs cost beside a plain copy on the same device: one line for each shape.
#pragma once

#include <cstdint>

#include "penstock/device.hpp"

namespace penstock {

void measure_packs(Stream& stream, unsigned char* memory, std::uint64_t bytes);

}  // namespace penstock
