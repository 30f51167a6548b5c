// Deflate by libdeflate, in the framing of zlib (RFC 1950) and of gzip (RFC 1952), whose checksums libdeflate verifies.
#include <libdeflate.h>

#include <new>

#include "data/decode/codecs/block.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {
namespace {

constexpr int kMostStreams = 64;  // one after the other in one chunk

using Decompress = libdeflate_result (*)(libdeflate_decompressor*, const void*, std::size_t, void*, std::size_t,
                                         std::size_t*, std::size_t*);

class Decompressor final : public StageState {
  public:
    Decompressor() : raw_(libdeflate_alloc_decompressor()) {
        if (raw_ == nullptr) throw std::bad_alloc();
    }
    ~Decompressor() override { libdeflate_free_decompressor(raw_); }
    Decompressor(const Decompressor&) = delete;
    Decompressor& operator=(const Decompressor&) = delete;
    libdeflate_decompressor* raw() const noexcept { return raw_; }

  private:
    libdeflate_decompressor* raw_;
};

class ZlibBlock final : public BlockDecoder {
  public:
    bool decode(std::span<const std::byte> stored, std::span<std::byte> plain) override {
        return libdeflate_zlib_decompress(own_.raw(), stored.data(), stored.size(), plain.data(), plain.size(),
                                          nullptr) == LIBDEFLATE_SUCCESS;
    }

  private:
    Decompressor own_;
};

class Deflate final : public Stage {
  public:
    Deflate(Decompress decompress, bool many) : decompress_(decompress), many_(many) {}

    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState* state) const override {
        return undo_all({stored, 0}, room, *static_cast<const Decompressor*>(state));
    }
    Undone undo_padded(std::span<const std::byte> stored, std::span<std::byte> room, StageState* state) const override {
        return undo_all({stored, kStreamPadding}, room, *static_cast<const Decompressor*>(state));
    }
    std::unique_ptr<StageState> make_state() const override { return std::make_unique<Decompressor>(); }
    // Of deflate: 258 bytes by 2 bits.
    std::uint64_t most_ratio() const override { return 1032; }

  private:
    struct StreamsLeft {
        std::span<const std::byte> stored;
        std::size_t padding;  // bytes behind that may be read
    };
    struct StreamSizes {
        std::size_t taken = 0, given = 0;
    };

    Undone undo_all(StreamsLeft from, std::span<std::byte> room, const Decompressor& own) const {
        std::span<const std::byte>& stored = from.stored;
        std::size_t made = 0;
        for (int streams = 0;;) {
            StreamSizes sizes;
            const libdeflate_result result = undo_one(from, room.subspan(made), own, sizes);
            if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
                return {{}, "it decodes to more than the " + std::to_string(room.size()) + " bytes of its shape"};
            }
            if (result != LIBDEFLATE_SUCCESS) return {{}, "its deflate stream is damaged, or was cut short"};
            made += sizes.given;
            stored = stored.subspan(sizes.taken);
            if (!many_ || stored.empty()) return {room.first(made)};
            if (++streams == kMostStreams) {
                return {{}, "it has more than " + std::to_string(kMostStreams) + " deflate streams"};
            }
        }
    }

    // libdeflate copies byte by byte once it is near the end of what it may read, where a few bits can be most of a
    // chunk: so it may read the padding, too. A stream that is not whole before that is looked at again without.
    libdeflate_result undo_one(const StreamsLeft& from, std::span<std::byte> room, const Decompressor& own,
                               StreamSizes& sizes) const {
        const auto within = [&](std::size_t bytes) {
            return decompress_(own.raw(), from.stored.data(), bytes, room.data(), room.size(), &sizes.taken,
                               &sizes.given);
        };
        if (from.padding != 0) {
            const libdeflate_result result = within(from.stored.size() + from.padding);
            if (result == LIBDEFLATE_SUCCESS && sizes.taken <= from.stored.size()) return result;
        }
        return within(from.stored.size());
    }

    Decompress decompress_;
    bool many_;
};

}  // namespace

StagePtr make_deflate(const Values&) { return std::make_unique<Deflate>(&libdeflate_zlib_decompress_ex, false); }
StagePtr make_zlib(const Values&) { return std::make_unique<Deflate>(&libdeflate_zlib_decompress_ex, true); }
StagePtr make_gzip(const Values&) { return std::make_unique<Deflate>(&libdeflate_gzip_decompress_ex, true); }

std::unique_ptr<BlockDecoder> make_zlib_block() { return std::make_unique<ZlibBlock>(); }

}  // namespace penstock::data
