// Pieces: what one operation on storage is to move, how much of it has moved, and what follows from that.
//
// A piece lies within one range of the request. Its operation may be larger than what is wanted, because paths that
// bypass the page cache read whole aligned blocks; the wanted bytes are always a subrange of the operation's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/request.hpp"
#include "os/system.hpp"
#include "penstock/device.hpp"
#include "path/path.hpp"

namespace penstock::engine {

class Job;
class TransferState;

// What is wanted is the range; the operation that moves it has a place of its own in the file and in memory.
struct Piece : RequestRange {
    std::uint64_t operation_offset = 0;
    std::uint64_t operation_bytes = 0;
    std::uint64_t slot_offset = 0;          // of the operation's memory in the slot
    std::byte* operation_memory = nullptr;  // in a slot or the caller's; nullptr: the path lends memory of its own
    std::uint64_t moved_bytes = 0;          // of the operation, so far
    std::uint64_t fallen_back_bytes = 0;    // of the arrived, moved through the page cache instead
    std::uint32_t retries = 0;

    // An operation that moves exactly the range.
    static Piece of(const RequestRange& range) noexcept { return {range, range.offset_bytes, range.bytes}; }
    std::uint64_t lead_bytes() const noexcept { return offset_bytes - operation_offset; }
    // Wanted bytes that have arrived, from the start of the range.
    std::uint64_t arrived_bytes() const noexcept {
        const std::uint64_t past_lead = moved_bytes > lead_bytes() ? moved_bytes - lead_bytes() : 0;
        return past_lead < bytes ? past_lead : bytes;
    }
};

// Pieces of one job that fill a slot, or a part of one.
struct Chunk {
    std::vector<Piece> pieces{};
    Job* job = nullptr;
    std::uint32_t slot = 0;

    // For the session that has it in storage.
    std::uint32_t open_pieces = 0;              // whose operations have not ended
    Clock::time_point stopped_since{};          // when its transfer was first seen to be stopped
    bool given_up = false;                      // its slot waits for its operations, and nothing of them is used
    std::vector<std::shared_ptr<void>> kept{};  // given up: files and memory that its operations use
};

// Moves what is still wanted of the piece by system calls, on the descriptor of `path` (direct or buffered), and counts
// them. Returns the errno that ended it; 0 when all came or the file ended, which the transfer is told.
int move_rest(os::System& system, TransferState& transfer, Piece& piece, PathKind path);
// The same after a path past the page cache was refused: through the page cache. An error stops the transfer. Returns
// the wanted bytes that came.
std::uint64_t fall_back(os::System& system, TransferState& transfer, Piece& piece);

// An operation on the piece failed: what, where, and advice for the common causes.
ErrorInfo operation_error(const Piece& piece, Direction direction, const Completion& completion, PathKind path);
ErrorInfo operation_error(const Piece& piece, Direction direction, int error_number, PathKind path);
// O_DIRECT was refused when bytes were to move: for a strict transfer an error, for others the cause of a fallback.
bool refuses_bypass(int error_number) noexcept;
ErrorInfo bypass_refused(ErrorInfo operation);
std::string refused_at_transfer(int error_number);

// What arrived of the pieces, as copies from where their operations put it to the device; neighbours are merged.
void gather_copies(std::span<const Piece> pieces, std::vector<CopyPiece>& copies);
// Reports pieces that have ended to their transfer, whether all of their bytes came or not.
void account(TransferState& transfer, PathKind path, std::span<const Piece> pieces);

}  // namespace penstock::engine
