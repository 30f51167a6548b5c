// HDF5's fletcher32: the sum of the data as big-endian words of 16 bits, little-endian behind them. A last odd byte is
// the upper half of a word. HDF5 up to 1.6.2 swapped the bytes in each half of the sum on little-endian machines, and
// readers accept that.
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "data/decode/checksums/sums.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kWordsAtATime = 360;  // after so many the sums must be folded, or they overflow

std::uint32_t folded(std::uint32_t sum) { return (sum & 0xffff) + (sum >> 16); }

std::uint32_t swapped_in_halves(std::uint32_t sum) { return (sum & 0x00ff00ff) << 8 | (sum & 0xff00ff00) >> 8; }

class Fletcher32 final : public Stage {
  public:
    Undone undo(std::span<const std::byte> stored, std::span<std::byte>, StageState*) const override {
        if (stored.size() < kSumBytes) return {{}, "it has fewer bytes than a checksum"};
        const std::span<const std::byte> data = stored.first(stored.size() - kSumBytes);
        std::uint32_t told = 0;
        for (std::size_t i = stored.size(); i-- > data.size();) {
            told = told << 8 | std::to_integer<std::uint32_t>(stored[i]);
        }
        const std::uint32_t sum = fletcher32(data);
        if (told == sum || told == swapped_in_halves(sum)) return {data};
        char words[64];
        std::snprintf(words, sizeof words, "its checksum is 0x%08x, it says 0x%08x", sum, told);
        return {{}, words};
    }
    std::uint64_t stored_bytes(std::uint64_t plain) const override { return plain + kSumBytes; }
    bool keeps_size() const override { return true; }
};

}  // namespace

std::uint32_t fletcher32(std::span<const std::byte> data) {
    std::uint32_t low = 0, high = 0;
    const auto* at = reinterpret_cast<const std::uint8_t*>(data.data());
    std::size_t words = data.size() / 2;
    while (words != 0) {
        const std::size_t some = std::min(words, kWordsAtATime);
        words -= some;
        for (std::size_t i = 0; i < some; ++i, at += 2) {
            low += static_cast<std::uint32_t>(at[0] << 8 | at[1]);
            high += low;
        }
        low = folded(low);
        high = folded(high);
    }
    if (data.size() % 2 != 0) {
        low += static_cast<std::uint32_t>(*at << 8);
        high += low;
        low = folded(low);
        high = folded(high);
    }
    return folded(high) << 16 | folded(low);
}

StagePtr make_fletcher32(const Values&) { return std::make_unique<Fletcher32>(); }

}  // namespace penstock::data
