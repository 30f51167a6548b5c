// The checksum crc32c (Castagnoli) of Zarr: 4 little-endian bytes behind the data. It takes eight bytes at a time, by
// tables.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "data/decode/checksums/sums.hpp"
#include "data/decode/fields.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t sum = i;
        for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? kPolynomial : 0);
        tables[0][i] = sum;
    }
    for (std::size_t k = 1; k < tables.size(); ++k) {
        for (std::size_t i = 0; i < 256; ++i) {
            tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xff];
        }
    }
    return tables;
}
constexpr Tables kTables = make_tables();

class Crc32c final : public Stage {
  public:
    Undone undo(std::span<const std::byte> stored, std::span<std::byte>, StageState*) const override {
        if (stored.size() < kSumBytes) {
            return {{}, std::to_string(stored.size()) + " bytes are too few for a checksum"};
        }
        const std::span<const std::byte> data = stored.first(stored.size() - kSumBytes);
        const std::uint32_t told = Fields(stored.subspan(data.size()), ByteOrder::little).number_32();
        const std::uint32_t sum = crc32c(data);
        if (sum == told) return {data};
        char words[64];
        std::snprintf(words, sizeof words, "its checksum is 0x%08x, it says 0x%08x", sum, told);
        return {{}, words};
    }
    std::uint64_t stored_bytes(std::uint64_t plain) const override { return plain + kSumBytes; }
    bool keeps_size() const override { return true; }
};

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> data) {
    std::uint32_t sum = ~std::uint32_t{0};
    while (data.size() >= 8) {
        Fields eight(data.first(8), ByteOrder::little);
        const std::uint32_t low = eight.number_32() ^ sum, high = eight.number_32();
        sum = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
              kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][high >> 8 & 0xff] ^
              kTables[1][high >> 16 & 0xff] ^ kTables[0][high >> 24];
        data = data.subspan(8);
    }
    for (const std::byte one : data) sum = sum >> 8 ^ kTables[0][(sum ^ std::to_integer<std::uint32_t>(one)) & 0xff];
    return ~sum;
}

StagePtr make_crc32c(const Values&) { return std::make_unique<Crc32c>(); }

}  // namespace penstock::data
