// What boxes cost beside a plain copy on the same device: one line for each shape.
#pragma once

#include <cstdint>
#include <functional>

#include "penstock/device.hpp"

namespace penstock {

// The median of a few repetitions, after one that does not count.
double median_seconds(const std::function<void()>& work);

// The device's own copy within its memory, or the CPU's on a device without one.
void copy_within(Stream& stream, void* to, const void* from, std::uint64_t bytes);

void measure_boxes(Stream& stream, unsigned char* memory, std::uint64_t bytes);

}  // namespace penstock
