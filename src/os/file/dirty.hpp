// How many bytes may still become dirty in the page cache before the kernel slows writers down to the storage's speed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::os {

// Linux slows writers down from the middle between its two thresholds on (balance_dirty_pages). Returns nothing if
// /proc/vmstat lacks the counters. `root` as in identity.hpp. Takes about 30 us.
std::optional<std::uint64_t> dirty_room_bytes(const std::string& root = {});

}  // namespace penstock::os
