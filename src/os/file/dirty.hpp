// How many bytes writers may still leave dirty in the page cache before the kernel slows them to the storage's speed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::os {

// Linux lets writers run free up to the middle of its two thresholds (balance_dirty_pages). Nothing where /proc/vmstat
// does not tell. `root` as in identity.hpp. Takes some 30 us.
std::optional<std::uint64_t> dirty_room_bytes(const std::string& root = {});

}  // namespace penstock::os
