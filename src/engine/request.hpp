// What the engine moves: ranges of a request, cut into pieces, gathered into chunks.
//
// A piece lies within one range. Its operation may be larger than what is wanted, because paths that bypass the page
// cache read whole aligned blocks; `wanted` bytes are always a subrange of the operation's. A chunk fills one slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "penstock/path.hpp"
#include "penstock/plan.hpp"
#include "penstock/types.hpp"

namespace penstock::engine {

struct RequestRange {
    const FileHandle* file = nullptr;
    std::uint64_t offset_bytes = 0;
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t position = 0;  // bytes of the request before this range
    const void* allocation = nullptr;  // which the memory lies in: no copy crosses from one into another
};

struct Request {
    Direction direction = Direction::read;
    bool host_memory = false;  // the ranges' memory is reached by the CPU, not by the device
    std::vector<RequestRange> ranges;
    std::vector<std::shared_ptr<void>> keep_alive;  // files and memory, held until the last operation ended
    bool strict = false;
    Clock::time_point started = Clock::now();  // when the caller asked
    Deadline deadline = Deadline::never();
    std::function<void(std::uint64_t, std::uint64_t)> progress;
};

struct Piece {
    const FileHandle* file = nullptr;
    std::byte* memory = nullptr;      // where the wanted bytes live for the user
    const void* allocation = nullptr;
    std::uint64_t position = 0;       // in the request
    std::uint64_t offset_bytes = 0;   // wanted
    std::uint64_t bytes = 0;          // wanted
    std::uint64_t operation_offset = 0;
    std::uint64_t operation_bytes = 0;
    std::uint64_t slot_offset = 0;    // of the operation's memory in the slot
    std::uint64_t moved_bytes = 0;    // of the operation, so far
    std::uint64_t fallen_back_bytes = 0;  // of the arrived, moved through the page cache instead
    std::uint32_t retries = 0;

    std::uint64_t lead_bytes() const noexcept { return offset_bytes - operation_offset; }
    // Wanted bytes that have arrived, from the start of the wanted range.
    std::uint64_t arrived_bytes() const noexcept {
        const std::uint64_t past_lead = moved_bytes > lead_bytes() ? moved_bytes - lead_bytes() : 0;
        return past_lead < bytes ? past_lead : bytes;
    }
};

struct Chunk {
    std::vector<Piece> pieces;
    std::uint64_t bytes = 0;  // wanted, of all pieces
    void clear() noexcept {
        pieces.clear();
        bytes = 0;
    }
};

}  // namespace penstock::engine
