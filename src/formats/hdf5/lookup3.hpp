// The checksum of HDF5's newer structures: lookup3 of Bob Jenkins, begun with 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::formats {

std::uint32_t lookup3(std::span<const std::byte> bytes);

}  // namespace penstock::formats
