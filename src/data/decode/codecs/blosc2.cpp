// HDF5's filter 32026: a frame of blosc 2 that holds one chunk.
//
// The frame is MessagePack, big-endian, with its fields at places that do not change: the bytes of its header (at 11),
// of the frame (16), of the content (30) and of the packed chunks (39). Behind the header come the chunk and, packed as
// a chunk itself, where it begins, or that it is all one value. A layer "b2nd" in the header tells of an array whose
// chunk is cut into blocks of several dimensions, each filled up to its whole shape.
//
// The chunk is little-endian: flags, bytes of an element, and the bytes of content, block and chunk; filters; the
// places of the blocks. A block is one stream, or one for each byte of an element; its length says what it is: 0 of
// zeros, less than 0 of one value, that of what it stands for as it is, else packed. Ensures: sizes are compared with
// the chunk's shape and with the stored bytes before they are used.
#include <algorithm>
#include <cstring>

#include "data/decode/codecs/blosc_formats.hpp"
#include "data/decode/fields.hpp"
#include "data/decode/makers.hpp"
#include "data/decode/shuffles/bitshuffle.hpp"
#include "data/decode/shuffles/shuffle.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kFrameHead = 87, kLayersBehind = 5, kChunkHead = 32, kFilterSlots = 6, kMostAxes = 8;
constexpr std::uint32_t kExtended = 5, kStoredPlain = 2, kOneStream = 16;  // flags of a chunk
constexpr std::uint32_t kUsesMore = 0x0f;  // dictionaries and the like, in the last byte of its header
constexpr std::uint32_t kNoFilter = 0, kShuffles = 1, kShufflesBits = 2, kTruncates = 4;
enum class AllOne : std::uint32_t { no, zeros, nans, repeated, never_set };

using PackedBytes = std::span<const std::byte>;

struct Blosc2State final : StageState {
    BloscFormats formats{};
    std::vector<std::byte> content{}, planes{};
    std::vector<std::byte> blocks[2]{};
    std::size_t item_bytes = 1;  // of the chunk that is decoded
};

struct BloscChunk {
    std::uint32_t flags, item_bytes;
    std::uint64_t bytes, block_bytes, stored_bytes;
    std::uint32_t filters[kFilterSlots], more;
    AllOne all_one() const noexcept { return static_cast<AllOne>(more >> 4 & 7); }
};

BloscChunk chunk_of(Fields& fields) {
    fields.number(2);
    BloscChunk chunk{};
    chunk.flags = static_cast<std::uint32_t>(fields.number(1));
    chunk.item_bytes = std::max(1u, static_cast<std::uint32_t>(fields.number(1)));
    chunk.bytes = fields.number(4);
    chunk.block_bytes = fields.number(4);
    chunk.stored_bytes = fields.number(4);
    for (std::uint32_t& filter : chunk.filters) filter = static_cast<std::uint32_t>(fields.number(1));
    fields.number(9);
    chunk.more = static_cast<std::uint32_t>(fields.number(1));
    return chunk;
}

void repeat(PackedBytes value, std::span<std::byte> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = value[i % value.size()];
}

// The chunk is all one value. Returns whether that is known.
bool put_one(AllOne what, PackedBytes value, std::uint32_t item_bytes, std::span<std::byte> out) {
    constexpr std::uint32_t kNan = 0x7fc00000;
    constexpr std::uint64_t kWideNan = 0x7ff8000000000000;
    if (what == AllOne::zeros || what == AllOne::never_set) std::fill(out.begin(), out.end(), std::byte{0});
    else if (what == AllOne::nans && item_bytes == 4) repeat(std::as_bytes(std::span(&kNan, 1)), out);
    else if (what == AllOne::nans && item_bytes == 8) repeat(std::as_bytes(std::span(&kWideNan, 1)), out);
    else if (what == AllOne::repeated && value.size() == item_bytes) repeat(value, out);
    else return false;
    return true;
}

bool decode_stream(Fields& fields, std::span<std::byte> out, BlockDecoder& decoder) {
    const auto length = static_cast<std::int32_t>(fields.number_32());
    if (length <= 0) {
        if (length < -255) return false;
        const bool is_value = length < 0 && (fields.number(1) & 1) != 0;
        std::fill(out.begin(), out.end(), static_cast<std::byte>(-length & 0xff));
        return (length == 0 || is_value) && !fields.ended_early();
    }
    const PackedBytes stream = fields.take(static_cast<std::uint64_t>(length));
    if (fields.ended_early()) return false;
    if (stream.size() != out.size()) return decoder.decode(stream, out);
    std::memcpy(out.data(), stream.data(), out.size());
    return true;
}

// Undoes one filter of a block. Returns whether it is known.
bool undo_filter(std::uint32_t filter, PackedBytes from, std::span<std::byte> to, Blosc2State& own) {
    const std::size_t item = own.item_bytes;
    if (filter == kShuffles) {
        unshuffle(from, to, item);
        return true;
    }
    if (filter != kShufflesBits) return false;
    const std::size_t items = from.size() / item, whole = (items - items % 8) * item;
    if (whole != 0) bit_unshuffle(from.first(whole), to.first(whole), item, own.planes);
    std::copy(from.begin() + static_cast<std::ptrdiff_t>(whole), from.end(),
              to.begin() + static_cast<std::ptrdiff_t>(whole));
    return true;
}

bool decode_block(Fields fields, const BloscChunk& chunk, std::span<std::byte> out, Blosc2State& own) {
    std::uint32_t left[kFilterSlots];
    std::size_t filters = 0;
    for (std::size_t i = kFilterSlots; i-- > 0;) {
        const std::uint32_t filter = chunk.filters[i];
        const bool does_nothing = filter == kNoFilter || filter == kTruncates;
        if (!does_nothing && !(filter == kShuffles && chunk.item_bytes == 1)) left[filters++] = filter;
    }
    const bool splits = (chunk.flags & kOneStream) == 0 && out.size() == chunk.block_bytes;
    const std::size_t streams = splits ? chunk.item_bytes : 1;
    BlockDecoder* const decoder = own.formats.decoder(chunk.flags >> 5);
    if (out.size() % streams != 0 || decoder == nullptr) return false;
    const auto room_of = [&](std::size_t done) {
        if (done == filters) return out;
        own.blocks[done % 2].resize(out.size());
        return std::span<std::byte>(own.blocks[done % 2]);
    };
    std::span<std::byte> bytes = room_of(0);
    const std::size_t each = out.size() / streams;
    for (std::size_t i = 0; i < streams; ++i) {
        if (!decode_stream(fields, bytes.subspan(i * each, each), *decoder)) return false;
    }
    for (std::size_t done = 0; done < filters; ++done) {
        const std::span<std::byte> to = room_of(done + 1);
        if (!undo_filter(left[done], bytes, to, own)) return false;
        bytes = to;
    }
    return true;
}

// Returns whether the chunk decoded to exactly `out`.
bool decode_chunk(PackedBytes stored, std::span<std::byte> out, Blosc2State& own) {
    Fields fields(stored, ByteOrder::little);
    const BloscChunk chunk = chunk_of(fields);
    const bool is_one = !fields.ended_early() && (chunk.flags & kExtended) == kExtended && chunk.bytes == out.size() &&
                        chunk.stored_bytes <= stored.size() && chunk.stored_bytes >= kChunkHead;
    if (!is_one || (chunk.more & kUsesMore) != 0) return false;
    stored = stored.first(chunk.stored_bytes);
    own.item_bytes = chunk.item_bytes;
    if (chunk.all_one() != AllOne::no) {
        return put_one(chunk.all_one(), stored.subspan(kChunkHead), chunk.item_bytes, out);
    }
    fields = Fields(stored.subspan(kChunkHead), ByteOrder::little);
    if ((chunk.flags & kStoredPlain) != 0) {
        const PackedBytes plain = fields.take(out.size());
        std::copy(plain.begin(), plain.end(), out.begin());
        return !fields.ended_early();
    }
    if (chunk.block_bytes == 0) return out.empty();
    for (std::uint64_t at = 0; at < out.size(); at += chunk.block_bytes) {
        const std::uint64_t place = fields.number(4), most = out.size() - at;
        const std::span<std::byte> block = out.subspan(at, std::min(chunk.block_bytes, most));
        if (place > stored.size() || !decode_block({stored.subspan(place), ByteOrder::little}, chunk, block, own)) {
            return false;
        }
    }
    return true;
}

// The shape of a chunk and of the blocks that it is cut into; no axes: it is not cut.
struct BlockGrid {
    std::size_t axes = 0;
    std::uint64_t chunk[kMostAxes]{}, block[kMostAxes]{};
    std::uint64_t items(bool filled_up) const noexcept {
        std::uint64_t count = 1;
        for (std::size_t i = 0; i < axes; ++i) {
            count *= filled_up ? (chunk[i] + block[i] - 1) / block[i] * block[i] : chunk[i];
        }
        return count;
    }
};

// What a layer "b2nd" says. Returns whether it can be so.
bool read_grid(Fields fields, std::uint64_t most_items, BlockGrid& grid) {
    fields.number(1 + 4 + 1 + 1);  // marks, its length and version
    grid.axes = fields.number(1);
    if (grid.axes == 0 || grid.axes > kMostAxes) return false;
    fields.number(1);
    for (std::size_t i = 0; i < grid.axes; ++i) fields.take(1 + 8);  // the shape of the array, which is the chunk's
    std::uint64_t items = 1;
    for (std::uint64_t* const shape : {grid.chunk, grid.block}) {
        fields.number(1);
        for (std::size_t i = 0; i < grid.axes; ++i) {
            fields.number(1);
            shape[i] = fields.number(4);
        }
    }
    for (std::size_t i = 0; i < grid.axes; ++i) {
        const bool fits = grid.chunk[i] != 0 && grid.block[i] != 0 && grid.block[i] <= grid.chunk[i];
        if (!fits || items > most_items / grid.chunk[i]) return false;
        items *= grid.chunk[i];
    }
    return !fields.ended_early();
}

struct BloscFrame {
    std::uint64_t header_bytes, stored_bytes, bytes;
    std::uint32_t item_bytes;
    BlockGrid grid{};
};

// Returns what is wrong with it; empty: nothing.
std::string read_frame(PackedBytes stored, std::uint64_t chunk_bytes, BloscFrame& frame) {
    static constexpr char kMagic[] = "\x9e\xa8" "b2frame";
    Fields fields(stored, ByteOrder::big);
    const PackedBytes magic = fields.take(11);
    if (fields.ended_early() || std::memcmp(magic.data(), kMagic, sizeof kMagic) != 0) {
        return "it is no frame of blosc 2";
    }
    const auto behind_mark = [&](std::size_t bytes, std::size_t between = 1) {
        const std::uint64_t number = fields.number(bytes);
        fields.take(between);
        return number;
    };
    frame.header_bytes = behind_mark(4);
    const std::uint64_t frame_bytes = behind_mark(8, 6);
    frame.bytes = behind_mark(8);
    frame.stored_bytes = behind_mark(8);
    frame.item_bytes = static_cast<std::uint32_t>(behind_mark(4, 1 + 4 + 1));
    const std::uint64_t one_chunk = fields.number(4);
    if (frame_bytes > stored.size() || frame.header_bytes > frame_bytes || frame.header_bytes < kFrameHead ||
        frame.stored_bytes > frame_bytes - frame.header_bytes) {
        return "its frame of blosc 2 was cut short";
    }
    if (frame.bytes != one_chunk || frame.item_bytes == 0) return "its frame of blosc 2 has not just one chunk";
    const PackedBytes header = stored.first(frame.header_bytes);
    Fields layers(header.subspan(kFrameHead), ByteOrder::big);
    layers.take(kLayersBehind);
    for (std::uint64_t left = layers.number(2); left > 0 && !layers.ended_early(); --left) {
        const PackedBytes name = layers.take(layers.number(1) & 0x1f);
        layers.number(1);
        const std::uint64_t place = layers.number(4);
        if (name.size() != 4 || std::memcmp(name.data(), "b2nd", 4) != 0) continue;
        if (place >= header.size()) return "its layer b2nd is damaged";
        const Fields layer(header.subspan(place), ByteOrder::big);
        if (!read_grid(layer, chunk_bytes / frame.item_bytes, frame.grid)) return "its layer b2nd is damaged";
    }
    return {};
}

// Rows of blocks to their places in the chunk.
void place_blocks(const BlockGrid& grid, std::size_t item_bytes, const std::byte* from, std::byte* to) {
    const std::size_t last = grid.axes - 1;
    std::uint64_t stride[kMostAxes], corner[kMostAxes]{};
    stride[last] = item_bytes;
    for (std::size_t i = last; i-- > 0;) stride[i] = stride[i + 1] * grid.chunk[i + 1];
    const auto step = [&](std::uint64_t* at, std::size_t axes, auto width, auto end) {  // to the next place; or false
        for (std::size_t i = axes; i-- > 0;) {
            at[i] += width(i);
            if (at[i] < end(i)) return true;
            at[i] = 0;
        }
        return false;
    };
    do {
        std::uint64_t row[kMostAxes]{};
        do {
            std::byte* place = to + corner[last] * item_bytes;
            bool is_inside = true;
            for (std::size_t i = 0; i < last; ++i) {
                place += (corner[i] + row[i]) * stride[i];
                is_inside = is_inside && corner[i] + row[i] < grid.chunk[i];
            }
            const std::uint64_t items = std::min(grid.block[last], grid.chunk[last] - corner[last]);
            if (is_inside) std::memcpy(place, from, items * item_bytes);
            from += grid.block[last] * item_bytes;
        } while (step(row, last, [](std::size_t) { return 1u; }, [&](std::size_t i) { return grid.block[i]; }));
    } while (step(corner, grid.axes, [&](std::size_t i) { return grid.block[i]; },
                  [&](std::size_t i) { return grid.chunk[i]; }));
}

class Blosc2 final : public Stage {
  public:
    Blosc2() { BloscFormats().need_all(); }

    Undone undo(PackedBytes stored, std::span<std::byte> room, StageState* state) const override {
        auto& own = *static_cast<Blosc2State*>(state);
        BloscFrame frame{};
        if (std::string fault = read_frame(stored, room.size(), frame); !fault.empty()) return {{}, std::move(fault)};
        const BlockGrid& grid = frame.grid;
        const std::uint64_t bytes = grid.axes == 0 ? frame.bytes : grid.items(false) * frame.item_bytes;
        if (bytes > room.size() || (grid.axes != 0 && frame.bytes != grid.items(true) * frame.item_bytes)) {
            return {{}, "it decodes to " + std::to_string(frame.bytes) + " bytes, its shape says " +
                            std::to_string(room.size())};
        }
        const std::span<std::byte> out = room.first(bytes);
        std::span<std::byte> content = out;
        if (grid.axes != 0) {
            own.content.resize(frame.bytes);
            content = own.content;
        }
        if (!decode_content(stored, frame, content, own)) {
            return {{}, "its chunk of blosc 2 is damaged, or packed in a way that is not known here"};
        }
        if (grid.axes != 0) place_blocks(grid, frame.item_bytes, content.data(), out.data());
        return {out};
    }
    std::unique_ptr<StageState> make_state() const override { return std::make_unique<Blosc2State>(); }
    // A chunk of one value takes the same bytes whatever its size.
    std::uint64_t most_ratio() const override { return kAnyRatio; }

  private:
    static bool decode_content(PackedBytes stored, const BloscFrame& frame, std::span<std::byte> out,
                               Blosc2State& own) {
        if (out.empty()) return true;
        std::uint64_t place = 0;
        const std::span<std::byte> place_bytes = std::as_writable_bytes(std::span(&place, 1));
        const PackedBytes chunks = stored.subspan(frame.header_bytes);
        if (!decode_chunk(chunks.subspan(frame.stored_bytes), place_bytes, own)) return false;
        if (place >> 63 != 0) {
            return put_one(static_cast<AllOne>(place >> 56 & 7), {}, frame.item_bytes, out);
        }
        return place <= frame.stored_bytes && decode_chunk(chunks.subspan(place), out, own);
    }
};

}  // namespace

// Values: two of versions, bytes of an element and of a chunk, level, filter, codec, and of an array its shape.
StagePtr make_blosc2(const Values& values) {
    constexpr std::uint32_t kKnownFilters[] = {kNoFilter, kShuffles, kShufflesBits, kTruncates};
    const bool is_known = values.size() >= 7 && std::find(std::begin(kKnownFilters), std::end(kKnownFilters),
                                                          values[5]) != std::end(kKnownFilters);
    if (!is_known || values[6] == 3 || values[6] > 5) {
        throw Error(ErrorCode::unsupported, "decode chunks", "the filter blosc2 has values that are not known",
                    "let the format's own library decode them");
    }
    return std::make_unique<Blosc2>();
}

}  // namespace penstock::data
