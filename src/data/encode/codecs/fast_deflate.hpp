// FastDeflate: deflate of level 1 by ISA-L, which is several times as fast there as libdeflate, and packs as zlib's
// level 1 does. It misses noise that repeats behind a KiB and more: who uses it looks for that.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace penstock::data {

inline constexpr int kFastLevel = 1;

class FastDeflate {
  public:
    virtual ~FastDeflate() = default;
    // A raw stream of deflate; its bytes, or 0 where the room is too small.
    virtual std::size_t compress(std::span<const std::byte> plain, std::span<std::byte> room) = 0;
};

// Null in a build without ISA-L.
std::unique_ptr<FastDeflate> make_fast_deflate();

}  // namespace penstock::data
