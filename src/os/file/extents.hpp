// How a file system keeps the bytes of a file, as FIEMAP tells: what O_DIRECT cannot read as it lies there.
#pragma once

#include <cstdint>
#include <optional>

namespace penstock::os {

// Bytes of the range that are kept compressed or among metadata; such are read through the page cache. Nothing where
// the file system does not tell, or where the range has more extents than are worth looking at.
std::optional<std::uint64_t> encoded_bytes(int fd, std::uint64_t offset_bytes, std::uint64_t bytes) noexcept;

// Whether the file system tells where bytes of this file lie on a disk. Files in memory and of servers have no such
// place.
bool tells_extents(int fd) noexcept;

// Whether the file is written in place and without checksums (chattr +C).
bool written_in_place(int fd) noexcept;

}  // namespace penstock::os
