// Stage: one filter of a chunk, and how to undo it.
//
// A Pipeline has one for each filter. Stages know nothing of each other, of files or of threads. Ensures: `undo` writes
// nothing outside the room that it is given, whatever the stored bytes say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::data {

inline constexpr std::uint64_t kSlackBytes = 64 * 1024;  // that a codec adds, at most, to what it cannot shorten
inline constexpr std::uint64_t kMostChunkBytes = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kAnyRatio = std::numeric_limits<std::uint64_t>::max();

// Bytes behind a stream that may be read, whatever they are, where the caller says so: decoders that look ahead slow
// down at the end of what they may read, and the last bytes of a chunk may be most of what it holds.
inline constexpr std::size_t kStreamPadding = 64;

// Memory that a stage keeps between chunks: contexts of a library, buffers. One thread uses it at a time.
class StageState {
  public:
    virtual ~StageState() = default;
};

struct Undone {
    std::span<const std::byte> bytes{};  // in the room, or a part of what was stored
    std::string fault{};                 // what is wrong with what was stored; empty: nothing
};

class Stage {
  public:
    virtual ~Stage() = default;
    virtual Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState* state) const = 0;
    virtual std::unique_ptr<StageState> make_state() const { return nullptr; }
    // The same, with the same result, where kStreamPadding bytes behind `stored` may be read.
    virtual Undone undo_padded(std::span<const std::byte> stored, std::span<std::byte> room, StageState* state) const {
        return undo(stored, room, state);
    }
    // Bytes that the filter makes of `plain` bytes: exactly, where it keeps_size(), else at most.
    virtual std::uint64_t stored_bytes(std::uint64_t plain) const { return plain + plain / 16 + kSlackBytes; }
    virtual bool keeps_size() const { return false; }
    // Bytes that one stored byte can become, at most.
    virtual std::uint64_t most_ratio() const { return 1; }
};

using StagePtr = std::shared_ptr<const Stage>;
using Values = std::vector<std::uint32_t>;

}  // namespace penstock::data
