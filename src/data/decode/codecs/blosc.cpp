// The container of blosc 1: blocks of equal size, each of one stream or of one for each byte of an element, shuffled.
//
// Its header: versions (2 bytes), flags, bytes of an element, and little-endian the bytes of the content, of a block
// and of all (4 each). Behind it stand the places of the blocks (4 each), or, if a flag says so, the content as it is.
// Ensures: what the header says is compared with the chunk's shape and with the stored bytes before it is used.
#include <algorithm>
#include <cstring>

#include "data/decode/codecs/blosc_formats.hpp"
#include "data/decode/fields.hpp"
#include "data/decode/makers.hpp"
#include "data/decode/shuffles/bitshuffle.hpp"
#include "data/decode/shuffles/shuffle.hpp"

namespace penstock::data {
namespace {

constexpr std::uint64_t kHeaderBytes = 16;
constexpr std::uint32_t kShuffled = 1, kPlain = 2, kBitShuffled = 4, kUnsplit = 16;
constexpr std::uint32_t kMostSplits = 16, kLeastSplitBytes = 128;

struct Header {
    std::uint32_t flags, item_bytes;
    std::uint64_t bytes, block_bytes, stored_bytes;
    std::size_t format() const noexcept { return flags >> 5; }
};

struct BloscState final : StageState {
    BloscFormats formats{};
    std::vector<std::byte> block{}, planes{};
};

Header header_of(Fields& fields) {
    fields.number(2);
    const auto flags = static_cast<std::uint32_t>(fields.number(1));
    const auto item_bytes = static_cast<std::uint32_t>(fields.number(1));
    const std::uint64_t bytes = fields.number(4), block_bytes = fields.number(4);
    return {flags, std::max<std::uint32_t>(1, item_bytes), bytes, block_bytes, fields.number(4)};
}

std::string fault_of(const Header& header, std::span<const std::byte> stored, std::span<const std::byte> room) {
    if (stored.size() < kHeaderBytes || header.stored_bytes > stored.size() || header.stored_bytes < kHeaderBytes) {
        return "it is not a blosc buffer, or was cut short";
    }
    if (header.bytes > room.size()) {
        return "it decodes to " + std::to_string(header.bytes) + " bytes, more than the " +
               std::to_string(room.size()) + " of its shape";
    }
    if (header.block_bytes == 0 && header.bytes != 0) return "its blosc blocks have no bytes";
    return {};
}

// The streams of one block, one behind the other, to the bytes of the block.
bool decode_streams(Fields fields, std::span<std::byte> plain, std::size_t splits, BlockDecoder& decoder) {
    const std::size_t each = plain.size() / splits;
    for (std::size_t i = 0; i < splits; ++i) {
        const std::span<std::byte> part = plain.subspan(i * each, each);
        const std::span<const std::byte> stream = fields.take(fields.number(4));
        if (fields.ended_early()) return false;
        if (stream.size() == part.size()) {
            std::memcpy(part.data(), stream.data(), part.size());
        } else if (!decoder.decode(stream, part)) {
            return false;
        }
    }
    return true;
}

class Blosc final : public Stage {
  public:
    Blosc() {
        BloscFormats().need_all();
    }

    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState* state) const override {
        Fields fields(stored, ByteOrder::little);
        const Header header = header_of(fields);
        if (std::string fault = fault_of(header, stored, room); !fault.empty()) return {{}, std::move(fault)};
        const std::span<std::byte> out = room.first(header.bytes);
        stored = stored.first(header.stored_bytes);
        fields = Fields(stored.subspan(kHeaderBytes), ByteOrder::little);
        if ((header.flags & kPlain) != 0) {
            const std::span<const std::byte> plain = fields.take(header.bytes);
            if (fields.ended_early()) return {{}, "it was cut short"};
            std::copy(plain.begin(), plain.end(), out.begin());
            return {out};
        }
        auto& own = *static_cast<BloscState*>(state);
        BlockDecoder* const decoder = own.formats.decoder(header.format());
        if (decoder == nullptr && !out.empty()) return {{}, "blosc packed it with a codec that is not known here"};
        for (std::uint64_t at = 0; at < out.size(); at += header.block_bytes) {
            const std::span<std::byte> block = out.subspan(at, std::min<std::uint64_t>(header.block_bytes,
                                                                                      out.size() - at));
            const std::uint64_t place = fields.number(4);
            if (place > stored.size() || !undo_block({stored.subspan(place), ByteOrder::little}, header, block, own)) {
                return {{}, "its block at byte " + std::to_string(at) + " is damaged, or was cut short"};
            }
        }
        return {out};
    }
    std::unique_ptr<StageState> make_state() const override { return std::make_unique<BloscState>(); }
    // Of zstd, which makes most of a byte.
    std::uint64_t most_ratio() const override { return 50'000; }

  private:
    static bool undo_block(Fields fields, const Header& header, std::span<std::byte> block, BloscState& own) {
        const std::uint32_t item = header.item_bytes;
        const bool is_last = block.size() != header.block_bytes;
        const bool splits = (header.flags & kUnsplit) == 0 && item <= kMostSplits &&
                            header.block_bytes / item >= kLeastSplitBytes && !is_last;
        BlockDecoder& decoder = *own.formats.decoder(header.format());
        const std::size_t streams = splits ? item : 1;
        const bool shuffled = (header.flags & kShuffled) != 0 && item > 1;
        const bool bits = !shuffled && (header.flags & kBitShuffled) != 0 && block.size() >= item;
        if (!shuffled && !bits) return decode_streams(fields, block, streams, decoder);
        own.block.resize(block.size());
        if (!decode_streams(fields, own.block, streams, decoder)) return false;
        if (shuffled) {
            unshuffle(own.block, block, item);
            return true;
        }
        const std::size_t items = block.size() / item;
        const std::size_t whole = items % 8 == 0 ? items * item : 0;  // else blosc left the bits where they were
        if (whole != 0) {
            bit_unshuffle(std::span<const std::byte>(own.block).first(whole), block.first(whole), item, own.planes);
        }
        std::copy(own.block.begin() + static_cast<std::ptrdiff_t>(whole), own.block.end(),
                  block.begin() + static_cast<std::ptrdiff_t>(whole));
        return true;
    }
};

}  // namespace

StagePtr make_blosc(const Values&) { return std::make_unique<Blosc>(); }

}  // namespace penstock::data
