// Shapes and attributes as C gives them: of snapshots and of restarts.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/snapshot.hpp"
#include "penstock_snapshot.h"

namespace penstock::c {

std::vector<std::uint64_t> lengths(const char* operation, const std::uint64_t* shape, std::uint64_t rank);
// Throws Error{invalid_argument}.
SnapshotAttribute snapshot_attribute(const penstock_snapshot_attribute* given);

}  // namespace penstock::c
