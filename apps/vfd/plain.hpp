// System calls of the driver: all bytes, over short counts and signals, or a Fault with what the system said.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::vfd {

// Answers how many bytes came: fewer where the file ends.
std::size_t read_plain(int fd, void* memory, std::size_t bytes, std::uint64_t offset_bytes);
// The same, and zeros for what lies behind the end of the file, as HDF5 expects.
void read_or_zero(int fd, void* memory, std::size_t bytes, std::uint64_t offset_bytes);
void write_plain(int fd, const void* memory, std::size_t bytes, std::uint64_t offset_bytes);
std::uint64_t size_of(int fd);

}  // namespace penstock::vfd
