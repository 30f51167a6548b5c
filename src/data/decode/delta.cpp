// Delta of numcodecs: the first number of a chunk, and from each to the next the difference, all of one type. Integers
// wrap around, and numbers of floating point are added one after the other in their own type, as NumPy's cumsum does.
#include <cstring>
#include <type_traits>

#include "data/decode/bits/bit_row.hpp"
#include "data/decode/makers.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

struct Difference {
    std::uint32_t bytes;
    bool big_endian, is_float;
};

template <class Word>
Word word_at(const std::byte* from, bool big_endian) {
    Word word{};
    std::memcpy(&word, from, sizeof word);
    return big_endian ? swapped(word) : word;
}

// Number is an unsigned Word, or as large as one.
template <class Word, class Number>
void add_up(std::span<const std::byte> from, std::byte* to, bool big_endian) {
    Number sum{};
    for (std::size_t at = 0; at < from.size(); at += sizeof(Word)) {
        Word word = word_at<Word>(from.data() + at, big_endian);
        Number number{};
        std::memcpy(&number, &word, sizeof number);
        sum = at == 0 ? number : static_cast<Number>(sum + number);  // the first one as it is: 0 and -0 give 0
        std::memcpy(&word, &sum, sizeof word);
        if (big_endian) word = swapped(word);
        std::memcpy(to + at, &word, sizeof word);
    }
}

class Delta final : public Stage {
  public:
    explicit Delta(const Difference& number) : number_(number) {}
    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState*) const override {
        if (stored.size() > room.size() || stored.size() % number_.bytes != 0) {
            return {{}, std::to_string(stored.size()) + " bytes are not the numbers of its shape"};
        }
        const bool big = number_.big_endian;
        switch (number_.bytes) {
            case 1: add_up<std::uint8_t, std::uint8_t>(stored, room.data(), big); break;
            case 2: add_up<std::uint16_t, std::uint16_t>(stored, room.data(), big); break;
            case 4:
                number_.is_float ? add_up<std::uint32_t, float>(stored, room.data(), big)
                                 : add_up<std::uint32_t, std::uint32_t>(stored, room.data(), big);
                break;
            default:
                number_.is_float ? add_up<std::uint64_t, double>(stored, room.data(), big)
                                 : add_up<std::uint64_t, std::uint64_t>(stored, room.data(), big);
                break;
        }
        return {room.first(stored.size())};
    }
    std::uint64_t stored_bytes(std::uint64_t plain) const override { return plain; }
    bool keeps_size() const override { return true; }

  private:
    Difference number_;
};

}  // namespace

StagePtr make_delta(const Values& values) {
    const bool has_all = values.size() == 3;
    const std::uint32_t bytes = has_all ? values[0] : 0;
    const bool is_float = has_all && values[2] != 0;
    const bool is_known = is_float ? bytes == 4 || bytes == 8 : bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (!is_known) {
        throw Error(ErrorCode::unsupported, "decode chunks", "the filter delta is of numbers that are not known",
                    "let the format's own library decode them");
    }
    return std::make_unique<Delta>(Difference{bytes, values[1] != 0, is_float});
}

}  // namespace penstock::data
