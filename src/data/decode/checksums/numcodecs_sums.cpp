// The checksums adler32 and crc32 as numcodecs adds them: 4 little-endian bytes before the data or behind them.
// Adler's sum is taken in columns, which do not wait for each other.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "data/decode/checksums/sums.hpp"
#include "data/decode/fields.hpp"
#include "data/decode/makers.hpp"
#include "penstock/checksum.hpp"

namespace penstock::data {
namespace {

constexpr std::uint64_t kPrimeOfAdler = 65521;
constexpr std::size_t kAdlerColumns = 32;
constexpr std::size_t kAdlerRows = 256;  // after so many a sum of sums must be taken, or it overflows 32 bits

std::uint32_t crc32(std::span<const std::byte> data) { return checksum(ChecksumKind::crc32, data); }

using Sum = std::uint32_t (*)(std::span<const std::byte>);

class NumcodecsSum final : public Stage {
  public:
    NumcodecsSum(Sum sum, const Values& values) : sum_(sum), is_before_(!values.empty() && values[0] != 0) {}
    Undone undo(std::span<const std::byte> stored, std::span<std::byte>, StageState*) const override {
        if (stored.size() < kSumBytes) {
            return {{}, std::to_string(stored.size()) + " bytes are too few for a checksum"};
        }
        const std::size_t bytes = stored.size() - kSumBytes;
        const std::span<const std::byte> data = stored.subspan(is_before_ ? kSumBytes : 0, bytes);
        const std::uint32_t told = Fields(stored.subspan(is_before_ ? 0 : bytes), ByteOrder::little).number_32();
        const std::uint32_t sum = sum_(data);
        if (told == sum) return {data};
        char words[64];
        std::snprintf(words, sizeof words, "its checksum is 0x%08x, it says 0x%08x", sum, told);
        return {{}, words};
    }
    std::uint64_t stored_bytes(std::uint64_t plain) const override { return plain + kSumBytes; }
    bool keeps_size() const override { return true; }

  private:
    Sum sum_;
    bool is_before_;
};

}  // namespace

// Column j has the sum of its bytes in `sums`, and in `sums_before` the sum of what that was before each row; the upper
// sum follows from both.
std::uint32_t adler32(std::span<const std::byte> data) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(data.data());
    std::uint64_t low = 1, high = 0;
    std::size_t rows = data.size() / kAdlerColumns;
    while (rows != 0) {
        const std::size_t some = std::min(rows, kAdlerRows);
        rows -= some;
        std::array<std::uint32_t, kAdlerColumns> sums{}, sums_before{};
        for (std::size_t row = 0; row < some; ++row, at += kAdlerColumns) {
            for (std::size_t j = 0; j < kAdlerColumns; ++j) {
                sums_before[j] += sums[j];
                sums[j] += at[j];
            }
        }
        high += some * kAdlerColumns * low;
        for (std::size_t j = 0; j < kAdlerColumns; ++j) {
            high += kAdlerColumns * std::uint64_t{sums_before[j]} + (kAdlerColumns - j) * std::uint64_t{sums[j]};
            low += sums[j];
        }
        low %= kPrimeOfAdler;
        high %= kPrimeOfAdler;
    }
    const auto* end = reinterpret_cast<const std::uint8_t*>(data.data()) + data.size();
    for (; at < end; ++at) {
        low += *at;
        high += low;
    }
    return static_cast<std::uint32_t>((high % kPrimeOfAdler) << 16 | low % kPrimeOfAdler);
}

StagePtr make_adler32(const Values& values) { return std::make_unique<NumcodecsSum>(&adler32, values); }
StagePtr make_crc32(const Values& values) { return std::make_unique<NumcodecsSum>(&crc32, values); }

}  // namespace penstock::data
