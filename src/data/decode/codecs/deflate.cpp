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
        std::size_t made = 0;
        for (int streams = 0;;) {
            std::size_t taken = 0, given = 0;
            const libdeflate_result result =
                decompress_(static_cast<const Decompressor*>(state)->raw(), stored.data(), stored.size(),
                            room.data() + made, room.size() - made, &taken, &given);
            if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
                return {{}, "it decodes to more than the " + std::to_string(room.size()) + " bytes of its shape"};
            }
            if (result != LIBDEFLATE_SUCCESS) return {{}, "its deflate stream is damaged, or was cut short"};
            made += given;
            stored = stored.subspan(taken);
            if (!many_ || stored.empty()) return {room.first(made)};
            if (++streams == kMostStreams) {
                return {{}, "it has more than " + std::to_string(kMostStreams) + " deflate streams"};
            }
        }
    }
    std::unique_ptr<StageState> make_state() const override { return std::make_unique<Decompressor>(); }
    // Of deflate: 258 bytes by 2 bits.
    std::uint64_t most_ratio() const override { return 1032; }

  private:
    Decompress decompress_;
    bool many_;
};

}  // namespace

StagePtr make_deflate(const Values&) { return std::make_unique<Deflate>(&libdeflate_zlib_decompress_ex, false); }
StagePtr make_zlib(const Values&) { return std::make_unique<Deflate>(&libdeflate_zlib_decompress_ex, true); }
StagePtr make_gzip(const Values&) { return std::make_unique<Deflate>(&libdeflate_gzip_decompress_ex, true); }

std::unique_ptr<BlockDecoder> make_zlib_block() { return std::make_unique<ZlibBlock>(); }

}  // namespace penstock::data
