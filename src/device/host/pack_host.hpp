// Packs by the CPU: in stream order for the emulated device, and at once for plain host memory.
#pragma once

#include "penstock/pack.hpp"

namespace penstock::device {

// Packs numbers of one pack. Requires: simplified() of pack_plan.hpp made `pack`. Thread-safe for packs that share no
// bytes.
void pack_on_host(const Pack& pack) noexcept;

}  // namespace penstock::device
