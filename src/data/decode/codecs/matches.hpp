// What decoders of the kind of LZ77 share: literals from a stream, and matches with what was already made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock::data {

// Ensures: reads nothing behind the stream, writes nothing behind the room. After something did not fit it is over.
class Matches {
  public:
    Matches(std::span<const std::byte> stored, std::span<std::byte> room)
        : from_(stored.data()), end_(stored.data() + stored.size()), room_(room) {}

    bool at_end() const noexcept { return from_ == end_; }
    // Returns a byte of the stream; 0, and nothing fits any more, when there is none.
    std::uint32_t next() noexcept {
        if (from_ != end_) return std::to_integer<std::uint32_t>(*from_++);
        broken_ = true;
        return 0;
    }
    bool copy_literals(std::size_t bytes) noexcept {
        if (broken_ || bytes > static_cast<std::size_t>(end_ - from_) || bytes > room_.size() - made_) return false;
        std::memcpy(room_.data() + made_, from_, bytes);
        from_ += bytes;
        made_ += bytes;
        return true;
    }
    // The match may reach into what it makes.
    bool copy_match(std::size_t distance, std::size_t bytes) noexcept {
        if (broken_ || distance > made_ || bytes > room_.size() - made_) return false;
        std::byte* to = room_.data() + made_;
        const std::byte* from = to - distance;
        if (distance >= bytes) {
            std::memcpy(to, from, bytes);
        } else if (distance == 1) {
            std::memset(to, std::to_integer<int>(*from), bytes);
        } else {
            for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
        }
        made_ += bytes;
        return true;
    }
    std::span<const std::byte> made() const noexcept { return room_.first(made_); }

  private:
    const std::byte* from_;
    const std::byte* end_;
    std::span<std::byte> room_;
    std::size_t made_ = 0;
    bool broken_ = false;
};

}  // namespace penstock::data
