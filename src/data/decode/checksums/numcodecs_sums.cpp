// The checksums adler32 and crc32 as numcodecs adds them: 4 little-endian bytes before the data or behind them.
#include <cstdint>
#include <cstdio>

#include "data/decode/checksums/sums.hpp"
#include "data/decode/fields.hpp"
#include "data/decode/makers.hpp"
#include "penstock/checksum.hpp"

namespace penstock::data {
namespace {

class NumcodecsSum final : public Stage {
  public:
    NumcodecsSum(ChecksumKind kind, const Values& values)
        : kind_(kind), is_before_(!values.empty() && values[0] != 0) {}
    Undone undo(std::span<const std::byte> stored, std::span<std::byte>, StageState*) const override {
        if (stored.size() < kSumBytes) {
            return {{}, std::to_string(stored.size()) + " bytes are too few for a checksum"};
        }
        const std::size_t bytes = stored.size() - kSumBytes;
        const std::span<const std::byte> data = stored.subspan(is_before_ ? kSumBytes : 0, bytes);
        const std::uint32_t told = Fields(stored.subspan(is_before_ ? 0 : bytes), ByteOrder::little).number_32();
        const std::uint32_t sum = checksum(kind_, data);
        if (told == sum) return {data};
        char words[64];
        std::snprintf(words, sizeof words, "its checksum is 0x%08x, it says 0x%08x", sum, told);
        return {{}, words};
    }
    std::uint64_t stored_bytes(std::uint64_t plain) const override { return plain + kSumBytes; }
    bool keeps_size() const override { return true; }

  private:
    ChecksumKind kind_;
    bool is_before_;
};

}  // namespace

StagePtr make_adler32(const Values& values) { return std::make_unique<NumcodecsSum>(ChecksumKind::adler32, values); }
StagePtr make_crc32(const Values& values) { return std::make_unique<NumcodecsSum>(ChecksumKind::crc32, values); }

}  // namespace penstock::data
