// FastDeflate: deflate by ISA-L, which is several times as fast as libdeflate, and packs as zlib's level 1 does. It
// misses noise that repeats behind a KiB and more: its user looks for that. Of long runs of one byte, as the planes of
// cut mantissas are, it makes as little as any search, forty times as fast: so it can begin a stream of any level.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace penstock::data {

inline constexpr int kFastLevel = 1;  // that it makes alone

class FastDeflate {
  public:
    virtual ~FastDeflate() = default;
    // A raw stream of deflate; its bytes, or 0 where the room is too small.
    virtual std::size_t compress(std::span<const std::byte> plain, std::span<std::byte> room) = 0;
    // A stream that goes on, of whole blocks; its bytes, or 0 where the room is too small.
    virtual std::size_t begin(std::span<const std::byte> plain, std::span<std::byte> room) = 0;
};

// Null in a build without ISA-L.
std::unique_ptr<FastDeflate> make_fast_deflate();

}  // namespace penstock::data
