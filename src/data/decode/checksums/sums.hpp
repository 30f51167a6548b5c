// Checksums that filters put behind the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::data {

inline constexpr std::size_t kSumBytes = 4;  // of each, little-endian

std::uint32_t fletcher32(std::span<const std::byte> data);  // HDF5's
std::uint32_t crc32c(std::span<const std::byte> data);      // Castagnoli

}  // namespace penstock::data
