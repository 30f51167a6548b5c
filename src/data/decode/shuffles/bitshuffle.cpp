// See bitshuffle.hpp. Eight rows of bits make eight elements' bytes: the rows are woven, which brings eight bytes of a
// square of bits together, and two squares in a vector are transposed by three exchanges. The planes of bytes that this
// makes are then unshuffled.
//
// The stage is HDF5's filter 32008. Without compression its blocks follow each other. With lz4 or zstd 8 bytes tell the
// bytes of the chunk and 4 those of a block, big-endian; then 4 bytes and a stream for each block. What is not a
// multiple of eight elements stands behind, as it is.
#include "data/decode/shuffles/bitshuffle.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "data/decode/bits/bit_row.hpp"
#include "data/decode/codecs/block.hpp"
#include "data/decode/fields.hpp"
#include "data/decode/makers.hpp"
#include "data/decode/shuffles/shuffle.hpp"
#include "data/decode/shuffles/vectors.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kTargetBytes = 8192, kLeastItems = 128;  // of a block whose size the writer did not choose

using Squares = std::uint64_t __attribute__((vector_size(kVectorBytes)));

template <class Word>
inline Word transposed(Word x) {
    Word t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aau;
    x = x ^ t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000cccc0000ccccu;
    x = x ^ t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0u;
    return x ^ t ^ (t << 28);
}

// One byte of all elements, from eight rows of `row_bytes`.
void gather_plane(const std::byte* rows, std::size_t row_bytes, std::byte* plane) {
    std::size_t i = 0;
    for (; i + kVectorBytes <= row_bytes; i += kVectorBytes) {
        Vector woven[kBitsOfByte];
#pragma GCC unroll 8
        for (std::size_t k = 0; k < kBitsOfByte; ++k) std::memcpy(&woven[k], rows + k * row_bytes + i, kVectorBytes);
        weave(woven);
#pragma GCC unroll 8
        for (std::size_t k = 0; k < kBitsOfByte; ++k) {
            const Squares squares = transposed(reinterpret_cast<Squares>(woven[k]));
            std::memcpy(plane + i * kBitsOfByte + k * kVectorBytes, &squares, kVectorBytes);
        }
    }
    for (; i < row_bytes; ++i) {
        std::uint64_t square = 0;
        for (std::size_t k = 0; k < kBitsOfByte; ++k) {
            square |= std::to_integer<std::uint64_t>(rows[k * row_bytes + i]) << kBitsOfByte * k;
        }
        square = transposed(square);
        for (std::size_t k = 0; k < kBitsOfByte; ++k) {
            plane[i * kBitsOfByte + k] = static_cast<std::byte>(square >> kBitsOfByte * k & 0xff);
        }
    }
}

struct BitshuffleState final : StageState {
    std::vector<std::byte> planes{}, block{};
    std::unique_ptr<BlockDecoder> decoder{};
};

using MakeBlock = std::unique_ptr<BlockDecoder> (*)();

class Bitshuffle final : public Stage {
  public:
    Bitshuffle(std::size_t item_bytes, std::size_t block_items, MakeBlock make)
        : item_bytes_(item_bytes), block_items_(block_items), make_(make) {
        if (make_ != nullptr) make_();  // or it throws here
    }

    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState* state) const override {
        auto& own = *static_cast<BitshuffleState*>(state);
        Fields fields(stored, ByteOrder::big);
        std::uint64_t bytes = stored.size(), block_bytes = block_items_ * item_bytes_;
        if (make_ != nullptr) {
            bytes = fields.number(8);
            block_bytes = fields.number(4);
        }
        if (bytes > room.size()) {
            return {{}, "it decodes to " + std::to_string(bytes) + " bytes, more than the " +
                            std::to_string(room.size()) + " of its shape"};
        }
        if (block_bytes == 0 || block_bytes % (kBitsOfByte * item_bytes_) != 0) {
            return {{}, "its blocks of " + std::to_string(block_bytes) + " bytes are not whole elements by eight"};
        }
        std::span<std::byte> left = room.first(bytes);
        while (left.size() >= kBitsOfByte * item_bytes_) {
            const std::uint64_t most = std::min<std::uint64_t>(block_bytes, left.size());
            const std::span<std::byte> elements = left.first(most - most % (kBitsOfByte * item_bytes_));
            const std::span<const std::byte> rows = rows_of(fields, elements.size(), own);
            if (rows.empty()) return {{}, "one of its blocks is damaged, or was cut short"};
            bit_unshuffle(rows, elements, item_bytes_, own.planes);
            left = left.subspan(elements.size());
        }
        const std::span<const std::byte> rest = fields.take(left.size());
        if (fields.ended_early()) return {{}, "its last elements were cut off"};
        std::copy(rest.begin(), rest.end(), left.begin());
        return {room.first(bytes)};
    }
    std::unique_ptr<StageState> make_state() const override {
        auto state = std::make_unique<BitshuffleState>();
        if (make_ != nullptr) state->decoder = make_();
        return state;
    }
    std::uint64_t stored_bytes(std::uint64_t plain) const override {
        return make_ == nullptr ? plain : Stage::stored_bytes(plain);
    }
    bool keeps_size() const override { return make_ == nullptr; }
    // Of zstd, which makes most of a byte.
    std::uint64_t most_ratio() const override { return make_ == nullptr ? 1 : 50'000; }

  private:
    // The bits of a block; empty: it is damaged.
    std::span<const std::byte> rows_of(Fields& fields, std::size_t bytes, BitshuffleState& own) const {
        if (make_ == nullptr) return fields.take(bytes);
        const std::span<const std::byte> stream = fields.take(fields.number(4));
        own.block.resize(bytes);
        if (fields.ended_early() || !own.decoder->decode(stream, own.block)) return {};
        return own.block;
    }

    std::size_t item_bytes_, block_items_;
    MakeBlock make_;  // nullptr: blocks are not compressed
};

}  // namespace

void bit_unshuffle(std::span<const std::byte> rows, std::span<std::byte> elements, std::size_t item_bytes,
                   std::vector<std::byte>& planes) {
    const std::size_t items = elements.size() / item_bytes, row_bytes = items / kBitsOfByte;
    planes.resize(elements.size());
    std::byte* const to = item_bytes == 1 ? elements.data() : planes.data();
    for (std::size_t k = 0; k < item_bytes; ++k) gather_plane(rows.data() + k * items, row_bytes, to + k * items);
    if (item_bytes != 1) unshuffle(planes, elements, item_bytes);
}

// Values: two of versions, bytes of an element, elements of a block or 0, compression (0: none, 2: lz4, 3: zstd).
StagePtr make_bitshuffle(const Values& values) {
    constexpr MakeBlock kMakers[] = {nullptr, nullptr, &make_lz4_block, &make_zstd_block};
    const std::uint32_t compression = values.size() > 4 ? values[4] : 0;
    if (values.size() < 3 || values[2] == 0 || compression == 1 || compression > 3) {
        throw Error(ErrorCode::unsupported, "decode chunks", "the filter bitshuffle has values that are not known",
                    "let the format's own library decode them");
    }
    std::size_t items = values.size() > 3 ? values[3] : 0;
    if (items == 0) items = std::max(kTargetBytes / values[2] / kBitsOfByte * kBitsOfByte, kLeastItems);
    if (items % kBitsOfByte != 0) {
        throw Error(ErrorCode::unsupported, "decode chunks", "the filter bitshuffle has blocks of odd sizes",
                    "let the format's own library decode them");
    }
    return std::make_unique<Bitshuffle>(values[2], items, kMakers[compression]);
}

}  // namespace penstock::data
