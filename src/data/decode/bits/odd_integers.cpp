// Integers that have fewer bits than the bytes they are stored in, as HDF5 describes them: 12 bits in 2 bytes. No
// filter, but what is left to do when the filters of a chunk are undone: the number is brought to the lowest bits, and
// its sign to all above.
#include <cstring>
#include <type_traits>

#include "data/decode/bits/bit_row.hpp"
#include "data/decode/makers.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

struct OddInteger {
    std::uint32_t bytes;
    bool big_endian;
    std::uint32_t bits, offset;  // from the lowest bit
    bool is_signed;
};

template <class Word>
void widen(const OddInteger& odd, std::span<const std::byte> from, std::byte* to) {
    constexpr auto kWordBits = static_cast<unsigned>(kBitsOfByte * sizeof(Word));
    const unsigned up = kWordBits - odd.bits - odd.offset, down = kWordBits - odd.bits;
    for (std::size_t i = 0; i < from.size() / sizeof(Word); ++i) {
        Word word{};
        std::memcpy(&word, from.data() + i * sizeof word, sizeof word);
        if (odd.big_endian) word = swapped(word);
        word = static_cast<Word>(word << up);
        const auto with_sign = static_cast<Word>(static_cast<std::make_signed_t<Word>>(word) >> down);
        word = odd.is_signed ? with_sign : static_cast<Word>(word >> down);
        if (odd.big_endian) word = swapped(word);
        std::memcpy(to + i * sizeof word, &word, sizeof word);
    }
}

class OddIntegers final : public Stage {
  public:
    explicit OddIntegers(const OddInteger& odd) : odd_(odd) {}
    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState*) const override {
        if (stored.size() > room.size() || stored.size() % odd_.bytes != 0) {
            return {{}, std::to_string(stored.size()) + " bytes are not the integers of its shape"};
        }
        switch (odd_.bytes) {
            case 1: widen<std::uint8_t>(odd_, stored, room.data()); break;
            case 2: widen<std::uint16_t>(odd_, stored, room.data()); break;
            case 4: widen<std::uint32_t>(odd_, stored, room.data()); break;
            default: widen<std::uint64_t>(odd_, stored, room.data()); break;
        }
        return {room.first(stored.size())};
    }
    std::uint64_t stored_bytes(std::uint64_t plain) const override { return plain; }
    bool keeps_size() const override { return true; }

  private:
    OddInteger odd_;
};

}  // namespace

StagePtr make_odd_integers(const Values& values) {
    const bool has_all = values.size() == 5;
    const std::uint64_t bytes = has_all ? values[0] : 0, bits = has_all ? values[2] : 0;
    const bool has_size = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (!has_size || bits == 0 || bits + values[3] > kBitsOfByte * bytes) {
        throw Error(ErrorCode::unsupported, "decode chunks", "integers whose bits are not known",
                    "let the format's own library decode them");
    }
    return std::make_unique<OddIntegers>(
        OddInteger{values[0], values[1] != 0, values[2], values[3], values[4] != 0});
}

}  // namespace penstock::data
