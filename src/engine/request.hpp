// What one transfer is asked to move, and what it holds until it ends. Jobs cut it into pieces (pieces.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "path/path.hpp"
#include "penstock/plan.hpp"
#include "penstock/types.hpp"

namespace penstock::engine {

// Bytes of a file and the memory that belongs to them.
struct RequestRange {
    const FileHandle* file = nullptr;
    std::uint64_t offset_bytes = 0;
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t position = 0;        // bytes of the request before this range
    const void* allocation = nullptr;  // in which the memory lies: no copy crosses from one into another

    // The part of it that begins `from` bytes after its start.
    RequestRange part(std::uint64_t from, std::uint64_t part_bytes) const noexcept {
        return {file, offset_bytes + from, memory + from, part_bytes, position + from, allocation};
    }
};

struct TransferRequest {
    Direction direction = Direction::read;
    bool host_memory = false;  // the CPU copies to and from the ranges' memory, not the device
    std::vector<RequestRange> ranges;
    std::vector<std::shared_ptr<void>> keep_alive;  // files and memory, held until the last operation ended
    bool strict = false;
    Clock::time_point started = Clock::now();  // when the caller asked
    Deadline deadline = Deadline::never();
    std::function<void(std::uint64_t, std::uint64_t)> progress;
};

}  // namespace penstock::engine
