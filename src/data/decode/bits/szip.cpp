// HDF5's szip (filter 4): the adaptive Rice code of CCSDS 121.0-B, in lines of blocks of pixels.
//
// 4 bytes stand before: the bytes of the chunk, little-endian. Pixels of 32 and 64 bits are stored as planes of bytes,
// as a shuffle leaves them. A block says how its pixels are coded: as they are, as quotients in zeros and remainders of
// k bits, in pairs, or as one of many blocks of zeros. With the predictor each pixel is the difference to the one
// before, mapped to a number without a sign, and each line begins with a pixel as it is. Ensures: reading ends at the
// last pixel that the chunk needs; lines are filled up with pixels that are dropped.
#include <algorithm>
#include <array>
#include <cstring>

#include "data/decode/bits/bit_source.hpp"
#include "data/decode/fields.hpp"
#include "data/decode/makers.hpp"
#include "data/decode/shuffles/shuffle.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

constexpr std::uint32_t kMostBlockPixels = 32, kMostLinePixels = 4096;
constexpr std::uint32_t kBigEndian = 16, kPredicts = 32;  // bits of the options
constexpr std::uint32_t kToTheEnd = 5, kBlocksOfSegment = 64;  // of blocks of zeros
constexpr std::uint32_t kMostPairSum = 12;

struct Coding {
    unsigned bits;  // of a pixel
    std::size_t pixel_bytes;
    std::uint32_t block_pixels, line_pixels, line_blocks;
    bool big_endian, predicts;
    std::size_t plane_bytes;  // of an element whose bytes stand in planes; 1: none do
    unsigned id_bits() const noexcept { return bits > 16 ? 5 : bits > 8 ? 4 : 3; }
};

struct Pair {
    std::uint32_t first, second;
};
constexpr std::size_t kPairs = (kMostPairSum + 1) * (kMostPairSum + 2) / 2;

// By their code: sums in order, and within a sum by the second number.
constexpr std::array<Pair, kPairs> make_pairs() {
    std::array<Pair, kPairs> pairs{};
    std::size_t code = 0;
    for (std::uint32_t sum = 0; sum <= kMostPairSum; ++sum) {
        for (std::uint32_t second = 0; second <= sum; ++second) pairs[code++] = {sum - second, second};
    }
    return pairs;
}
constexpr std::array<Pair, kPairs> kPairOf = make_pairs();

// The pixels of one line, as they are coded.
class Line {
  public:
    Line(const Coding& coding, BitSource& source, std::span<std::uint32_t> pixels)
        : coding_(coding), source_(source), pixels_(pixels) {}

    // Returns whether the first `wanted` pixels were there.
    bool decode(std::size_t wanted) {
        while (count_ < wanted && !source_.ended_early()) {
            if (!decode_block()) return false;
        }
        return !source_.ended_early();
    }

  private:
    bool decode_block() {
        const std::uint32_t id = source_.number(coding_.id_bits());
        const bool has_reference = coding_.predicts && count_ == 0;
        const std::size_t end = count_ + coding_.block_pixels;
        if (id == (1u << coding_.id_bits()) - 1) {
            while (count_ < end) add(source_.number(coding_.bits));
            return true;
        }
        const bool in_pairs = id == 0 && source_.number(1) != 0;
        if (has_reference) add(source_.number(coding_.bits));
        if (id == 0) return in_pairs ? decode_pairs(end) : skip_zeros(has_reference);
        split(end, id - 1);
        return true;
    }
    // Quotients, then remainders of `rest` bits. A source of its own stays in registers.
    void split(std::size_t end, unsigned rest) {
        BitSource source = source_;
        for (std::size_t i = count_; i < end; ++i) pixels_[i] = source.zeros() << rest;
        if (rest != 0) {
            for (std::size_t i = count_; i < end; ++i) pixels_[i] += source.number(rest);
        }
        count_ = end;
        source_ = source;
    }
    bool decode_pairs(std::size_t end) {
        while (count_ < end) {
            const std::uint32_t code = source_.zeros();
            if (code >= kPairs) return false;
            if (count_ % 2 == 0) add(kPairOf[code].first);
            add(kPairOf[code].second);
        }
        return true;
    }
    bool skip_zeros(bool has_reference) {
        const auto block = static_cast<std::uint32_t>(count_ / coding_.block_pixels);
        std::uint32_t blocks = source_.zeros() + 1;
        if (blocks == kToTheEnd) {
            blocks = std::min(coding_.line_blocks - block, kBlocksOfSegment - block % kBlocksOfSegment);
        } else if (blocks > kToTheEnd) {
            --blocks;
        }
        if (blocks > coding_.line_blocks - block) return false;
        const std::size_t zeros = std::size_t{blocks} * coding_.block_pixels - (has_reference ? 1 : 0);
        std::fill_n(pixels_.begin() + static_cast<std::ptrdiff_t>(count_), zeros, 0u);
        count_ += zeros;
        return true;
    }
    void add(std::uint32_t pixel) noexcept { pixels_[count_++] = pixel; }

    const Coding& coding_;
    BitSource& source_;
    std::span<std::uint32_t> pixels_;
    std::size_t count_ = 0;
};

// Makes pixels of what was left of each when the one before was subtracted.
void add_up(std::span<std::uint32_t> pixels, unsigned bits) noexcept {
    const auto most = static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1), half = most / 2 + 1;
    std::uint32_t pixel = pixels[0];
    for (std::uint32_t& coded : pixels.subspan(1)) {
        const std::uint32_t mirror = (pixel & half) != 0 ? most : 0, step = coded / 2 + coded % 2;
        if (step <= (mirror ^ pixel)) {
            pixel += coded % 2 == 0 ? step : ~step + 1;
        } else {
            pixel = mirror ^ coded;
        }
        coded = pixel;
    }
}

template <class Word>
void put_pixels(std::span<const std::uint32_t> pixels, std::byte* to, bool big_endian) noexcept {
    for (const std::uint32_t pixel : pixels) {
        auto word = static_cast<Word>(pixel);
        if (big_endian) word = swapped(word);
        std::memcpy(to, &word, sizeof word);
        to += sizeof word;
    }
}

struct SzipState final : StageState {
    std::vector<std::uint32_t> pixels{};
    std::vector<std::byte> planes{};
};

class Szip final : public Stage {
  public:
    explicit Szip(const Coding& coding) : coding_(coding) {}

    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState* state) const override {
        auto& own = *static_cast<SzipState*>(state);
        Fields fields(stored, ByteOrder::little);
        const std::uint64_t bytes = fields.number(4);
        if (bytes > room.size() || bytes % (coding_.pixel_bytes * coding_.plane_bytes) != 0) {
            return {{}, "it decodes to " + std::to_string(bytes) + " bytes, its shape says " +
                            std::to_string(room.size())};
        }
        const std::span<std::byte> out = room.first(bytes);
        std::span<std::byte> to = out;
        if (coding_.plane_bytes != 1) {
            own.planes.resize(bytes);
            to = own.planes;
        }
        if (fields.ended_early() || !decode_lines(fields.left(), to, own)) {
            return {{}, "it is damaged, or was cut short"};
        }
        if (coding_.plane_bytes != 1) unshuffle(own.planes, out, coding_.plane_bytes);
        return {out};
    }
    std::unique_ptr<StageState> make_state() const override { return std::make_unique<SzipState>(); }
    // Of blocks of zeros: 64 of 32 pixels of 4 bytes by 11 bits.
    std::uint64_t most_ratio() const override { return 6'000; }

  private:
    bool decode_lines(std::span<const std::byte> stored, std::span<std::byte> to, SzipState& own) const {
        own.pixels.resize(std::size_t{coding_.line_blocks} * coding_.block_pixels);
        BitSource source(stored);
        while (!to.empty()) {
            const std::size_t wanted = std::min<std::size_t>(coding_.line_pixels, to.size() / coding_.pixel_bytes);
            if (!Line(coding_, source, own.pixels).decode(wanted)) return false;
            const std::span<std::uint32_t> pixels = std::span(own.pixels).first(wanted);
            if (coding_.predicts) add_up(pixels, coding_.bits);
            switch (coding_.pixel_bytes) {
                case 1: put_pixels<std::uint8_t>(pixels, to.data(), false); break;
                case 2: put_pixels<std::uint16_t>(pixels, to.data(), coding_.big_endian); break;
                default: put_pixels<std::uint32_t>(pixels, to.data(), coding_.big_endian); break;
            }
            to = to.subspan(wanted * coding_.pixel_bytes);
        }
        return true;
    }

    Coding coding_;
};

}  // namespace

// Values: options, pixels of a block, bits of a pixel, pixels of a line.
StagePtr make_szip(const Values& values) {
    const bool has_all = values.size() == 4;
    const std::uint32_t block = has_all ? values[1] : 0, bits = has_all ? values[2] : 0, line = has_all ? values[3] : 0;
    const bool has_bits = (bits >= 1 && bits <= 24) || bits == 32 || bits == 64;
    if (block == 0 || block % 2 != 0 || block > kMostBlockPixels || line == 0 || line > kMostLinePixels || !has_bits) {
        throw Error(ErrorCode::unsupported, "decode chunks", "the filter szip has values that are not known",
                    "let the format's own library decode them");
    }
    const unsigned coded = bits > 24 ? 8 : bits;
    const std::size_t pixel_bytes = coded > 16 ? 4 : coded > 8 ? 2 : 1;
    const bool big_endian = (values[0] & kBigEndian) != 0, predicts = (values[0] & kPredicts) != 0;
    const std::uint32_t blocks = (line + block - 1) / block;
    return std::make_unique<Szip>(
        Coding{coded, pixel_bytes, block, line, blocks, big_endian, predicts, bits > 24 ? bits / 8 : 1u});
}

}  // namespace penstock::data
