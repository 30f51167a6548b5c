// A stream of bits that is taken from its front, the highest bit of each byte first.
//
// A taker past the end gives zeros, and says so.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "data/decode/bits/bit_row.hpp"

namespace penstock::data {

class BitSource {
  public:
    explicit BitSource(std::span<const std::byte> bytes) noexcept
        : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

    // Returns the next number of `bits`, 1 to 32.
    std::uint32_t number(unsigned bits) noexcept {
        if (have_ < bits) refill();
        if (have_ < bits) return give_up();
        const auto value = static_cast<std::uint32_t>(held_ >> (kBitsOfWord - bits));
        drop(bits);
        return value;
    }
    // Returns how many zeros stand before the next one, and takes both.
    std::uint32_t zeros() noexcept {
        std::uint64_t count = 0;
        for (;;) {
            if (have_ == 0) refill();
            if (have_ == 0) return give_up();
            const auto some = static_cast<std::uint64_t>(std::countl_zero(held_));
            if (some < have_) {
                drop(some + 1);
                return static_cast<std::uint32_t>(count + some);
            }
            count += have_;
            drop(have_);
        }
    }
    bool ended_early() const noexcept { return short_; }

  private:
    // Bits behind those that it has may be held too: refill() puts the same ones there again.
    void refill() noexcept {
        if (end_ - at_ >= static_cast<std::ptrdiff_t>(sizeof held_)) {
            std::uint64_t word = 0;
            std::memcpy(&word, at_, sizeof word);
            if constexpr (std::endian::native == std::endian::little) word = swapped(word);
            held_ |= word >> have_;
            at_ += (kBitsOfWord - 1 - have_) / kBitsOfByte;
            have_ |= 56;  // whole bytes, so at most 63 bits
            return;
        }
        for (; have_ < 56 && at_ != end_; ++at_, have_ += kBitsOfByte) {
            held_ |= std::to_integer<std::uint64_t>(*at_) << (56 - have_);
        }
    }
    void drop(std::uint64_t bits) noexcept {  // at most 63
        held_ <<= bits;
        have_ -= bits;
    }
    std::uint32_t give_up() noexcept {
        short_ = true;
        held_ = 0;
        have_ = 0;
        at_ = end_;
        return 0;
    }

    const std::byte* at_;
    const std::byte* end_;
    std::uint64_t held_ = 0;
    std::uint64_t have_ = 0;
    bool short_ = false;
};

}  // namespace penstock::data
