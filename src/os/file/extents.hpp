// How a file system stores the bytes of a file, from FIEMAP. O_DIRECT cannot read bytes that are stored encoded.
#pragma once

#include <cstdint>
#include <optional>

namespace penstock::os {

// Returns how many bytes of the range are compressed or stored among metadata: these are read through the page cache.
// Returns nothing if the file system has no answer, or if the range has too many extents to look at.
std::optional<std::uint64_t> encoded_bytes(int fd, std::uint64_t offset_bytes, std::uint64_t bytes) noexcept;

// Returns whether the file system knows where this file's bytes lie on a disk. Files in memory and files of servers
// have no such place.
bool tells_extents(int fd) noexcept;

// Returns whether the file is overwritten in place and without checksums (chattr +C).
bool written_in_place(int fd) noexcept;

}  // namespace penstock::os
