// HDF5's scaleoffset (filter 6): numbers less their least one, in as few bits as the largest difference takes.
//
// 21 bytes stand before: the bits of a number (4, little-endian), how many bytes the least one has (1), and that, of
// which 8 count. All bits set is the fill value, if the dataset has one. With all bits of the type the numbers follow
// as they are, in the order of the machine that wrote them. A little-endian one is assumed, as the HDF5 library of such
// a machine assumes it. Floats were multiplied by a power of ten, and rounded. Ensures: the arithmetic is that of the
// HDF5 library, to the bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "data/decode/bits/bit_row.hpp"
#include "data/decode/bits/unchanged.hpp"
#include "data/decode/fields.hpp"
#include "data/decode/makers.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kValues = 20, kFillAt = 8;  // of HDF5
constexpr std::uint32_t kDecimal = 0, kInteger = 2;  // ways of scaling
constexpr std::uint64_t kLeastBytes = 16;  // that are kept for the least number

struct ScaledNumbers {
    std::uint64_t count;
    std::uint32_t bytes;  // of one
    bool is_float, big_endian, has_fill;
    int decimals;
    std::uint64_t fill;  // its bytes, little-endian
};

struct Packed {
    std::span<const std::byte> bytes;
    unsigned bits;  // of a number
    std::uint64_t least;
};

template <class Item>
Item item_of(std::uint64_t bytes) noexcept {
    Item item{};
    std::memcpy(&item, &bytes, sizeof item);
    return item;
}

template <class Word>
void put_word(std::byte* to, std::uint64_t i, Word word, bool big_endian) noexcept {
    if (big_endian) word = swapped(word);
    std::memcpy(to + i * sizeof word, &word, sizeof word);
}

template <class Take>
void for_each_number(const ScaledNumbers& numbers, const Packed& packed, Take take) {
    if (packed.bits != 0) return BitRow(packed.bytes).each(numbers.count, packed.bits, take);
    for (std::uint64_t i = 0; i < numbers.count; ++i) take(i, 0);
}

template <class Word>
void place_integers(const ScaledNumbers& numbers, const Packed& packed, std::byte* to) {
    const auto all_set = static_cast<Word>((std::uint64_t{1} << packed.bits) - 1);
    const auto least = static_cast<Word>(packed.least), fill = static_cast<Word>(numbers.fill);
    const bool has_fill = numbers.has_fill, big_endian = numbers.big_endian;
    for_each_number(numbers, packed, [=](std::uint64_t i, std::uint64_t number) {
        const auto more = static_cast<Word>(number);
        const auto sum = static_cast<Word>(more + least);
        put_word(to, i, has_fill && more == all_set ? fill : sum, big_endian);
    });
}

template <class Real, class Word>
void place_floats(const ScaledNumbers& numbers, const Packed& packed, std::byte* to) {
    using Signed = std::make_signed_t<Word>;
    const auto all_set = static_cast<Word>((std::uint64_t{1} << packed.bits) - 1);
    const Real scale = std::pow(Real{10}, static_cast<Real>(numbers.decimals));
    const Real least = item_of<Real>(packed.least), fill = item_of<Real>(numbers.fill);
    const bool has_fill = numbers.has_fill, big_endian = numbers.big_endian;
    for_each_number(numbers, packed, [=](std::uint64_t i, std::uint64_t number) {
        const auto steps = static_cast<Word>(number);
        const Real sum = static_cast<Real>(static_cast<Signed>(steps)) / scale + least;
        put_word(to, i, std::bit_cast<Word>(has_fill && steps == all_set ? fill : sum), big_endian);
    });
}

template <class Word>
void copy_words(const ScaledNumbers& numbers, std::span<const std::byte> from, std::byte* to) {
    for (std::uint64_t i = 0; i < numbers.count; ++i) {
        Word word{};
        std::memcpy(&word, from.data() + i * sizeof word, sizeof word);
        put_word(to, i, word, numbers.big_endian);
    }
}

template <class Word>
void place(const ScaledNumbers& numbers, const Packed& packed, std::byte* to) {
    if (packed.bits == kBitsOfByte * sizeof(Word)) return copy_words<Word>(numbers, packed.bytes, to);
    if constexpr (sizeof(Word) == sizeof(float)) {
        if (numbers.is_float) return place_floats<float, Word>(numbers, packed, to);
    }
    if constexpr (sizeof(Word) == sizeof(double)) {
        if (numbers.is_float) return place_floats<double, Word>(numbers, packed, to);
    }
    place_integers<Word>(numbers, packed, to);
}

class ScaleOffset final : public Stage {
  public:
    explicit ScaleOffset(const ScaledNumbers& numbers) : numbers_(numbers) {}

    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState*) const override {
        Fields fields(stored, ByteOrder::little);
        const std::uint64_t bits = fields.number(4), least_bytes = fields.number(1);
        Fields least(fields.take(kLeastBytes), ByteOrder::little);
        if (fields.ended_early()) return {{}, "it has fewer bytes than its header"};
        if (bits > kBitsOfByte * numbers_.bytes) {
            return {{}, "its numbers have " + std::to_string(bits) + " bits, more than their type"};
        }
        const std::uint64_t bytes = numbers_.count * numbers_.bytes;
        if (bytes > room.size()) {
            return {{}, "it decodes to " + std::to_string(bytes) + " bytes, more than the " +
                            std::to_string(room.size()) + " of its shape"};
        }
        if ((numbers_.count * bits + 7) / kBitsOfByte > fields.left().size()) return {{}, "it was cut short"};
        const std::uint64_t counted = std::min<std::uint64_t>(least_bytes, 8);
        const Packed packed{fields.left(), static_cast<unsigned>(bits), least.number(counted)};
        switch (numbers_.bytes) {
            case 1: place<std::uint8_t>(numbers_, packed, room.data()); break;
            case 2: place<std::uint16_t>(numbers_, packed, room.data()); break;
            case 4: place<std::uint32_t>(numbers_, packed, room.data()); break;
            default: place<std::uint64_t>(numbers_, packed, room.data()); break;
        }
        return {room.first(bytes)};
    }
    // Without a fill value equal numbers take no bit at all, else one at least.
    std::uint64_t most_ratio() const override {
        return numbers_.has_fill ? kBitsOfByte * numbers_.bytes : kAnyRatio;
    }

  private:
    ScaledNumbers numbers_;
};

[[noreturn]] void refuse_scale_offset() {
    throw Error(ErrorCode::unsupported, "decode chunks", "the filter scaleoffset has values that are not known",
                "let the format's own library decode them");
}

}  // namespace

// Values: way of scaling, factor, numbers of a chunk, 0 for integers or 1 for floats, bytes of one, whether signed, 1
// for big-endian, whether there is a fill value, and that.
StagePtr make_scale_offset(const Values& values) {
    if (values.size() != kValues) refuse_scale_offset();
    const bool is_float = values[3] == 1;
    const std::uint32_t bytes = values[4], way = is_float ? kDecimal : kInteger;
    const bool is_known = is_float ? bytes == 4 || bytes == 8 : bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (values[0] != way || values[3] > 1 || values[6] > 1 || values[7] > 1 || !is_known) refuse_scale_offset();
    const auto factor = static_cast<int>(values[1]), all_bits = static_cast<int>(kBitsOfByte * bytes);
    if (!is_float && factor > all_bits) refuse_scale_offset();
    if (!is_float && factor == all_bits) return std::make_unique<Unchanged>();
    const std::uint64_t fill = values[kFillAt] | std::uint64_t{values[kFillAt + 1]} << 32;
    return std::make_unique<ScaleOffset>(
        ScaledNumbers{values[2], bytes, is_float, values[6] == 1, values[7] == 1, factor, fill});
}

}  // namespace penstock::data
