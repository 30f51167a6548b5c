// Checksums of chunks, as HDF5 puts them behind the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/context.hpp"
#include "penstock/types.hpp"

namespace penstock::snapshot {

// The begin of a chunk in memory; the rest of its bytes are zeros in the file.
struct ChunkBegin {
    const std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t chunk_bytes = 0;
};

// On the device that the memory is on, or on all cores of the host. Throws Error of the device.
std::vector<std::uint32_t> fletcher_sums(const Context& context, std::span<const ChunkBegin> chunks, MemoryKind memory);

// The Fletcher-32 of bytes with that sum and so many zeros behind them. `bytes`: before the zeros.
std::uint32_t fletcher_with_zeros(std::uint32_t sum, std::uint64_t bytes, std::uint64_t with_zeros);

}  // namespace penstock::snapshot
