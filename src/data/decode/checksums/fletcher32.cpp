// HDF5's fletcher32: the sum of the data as big-endian words of 16 bits, little-endian behind them. A last odd byte is
// the upper half of a word. HDF5 up to 1.6.2 swapped the bytes in each half of the sum on little-endian machines, and
// readers accept that.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "data/decode/checksums/sums.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kSumColumns = 16;
constexpr std::size_t kSumRows = 256;  // after so many a sum of sums must be taken, or it overflows 32 bits

// Modulo 65535, where a multiple of it stays 65535.
std::uint64_t folded(std::uint64_t sum) {
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

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

// The data are rows of kSumColumns words. Column j has the sum of its words in `sums`, and in `sums_before` the sum of
// what that was before each row; the upper sum follows from both. So the columns do not wait for each other.
std::uint32_t fletcher32(std::span<const std::byte> data) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(data.data());
    std::uint64_t low = 0, high = 0;
    std::size_t rows = data.size() / (2 * kSumColumns);
    while (rows != 0) {
        const std::size_t some = std::min(rows, kSumRows);
        rows -= some;
        std::array<std::uint32_t, kSumColumns> sums{}, sums_before{};
        for (std::size_t row = 0; row < some; ++row, at += 2 * kSumColumns) {
            for (std::size_t j = 0; j < kSumColumns; ++j) {
                sums_before[j] += sums[j];
                sums[j] += static_cast<std::uint32_t>(at[2 * j] << 8 | at[2 * j + 1]);
            }
        }
        high += some * kSumColumns * low;
        for (std::size_t j = 0; j < kSumColumns; ++j) {
            high += kSumColumns * std::uint64_t{sums_before[j]} + (kSumColumns - j) * std::uint64_t{sums[j]};
            low += sums[j];
        }
        low = folded(low);
        high = folded(high);
    }
    const auto* end = reinterpret_cast<const std::uint8_t*>(data.data()) + data.size();
    for (; at < end; at += 2) {
        low += static_cast<std::uint32_t>(at[0] << 8 | (at + 1 < end ? at[1] : 0));
        high += low;
    }
    return static_cast<std::uint32_t>(folded(high) << 16 | folded(low));
}

StagePtr make_fletcher32(const Values&) { return std::make_unique<Fletcher32>(); }

}  // namespace penstock::data
