// Zstandard by libzstd: frames of RFC 8878, one after the other, whose checksums libzstd verifies.
#include <zstd.h>

#include <new>

#include "data/decode/codecs/block.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {
namespace {


class ZstdContext final : public StageState, public BlockDecoder {
  public:
    ZstdContext() : raw_(ZSTD_createDCtx()) {
        if (raw_ == nullptr) throw std::bad_alloc();
    }
    ~ZstdContext() override { ZSTD_freeDCtx(raw_); }
    ZstdContext(const ZstdContext&) = delete;
    ZstdContext& operator=(const ZstdContext&) = delete;

    std::size_t decode_to(std::span<const std::byte> stored, std::span<std::byte> room) {
        return ZSTD_decompressDCtx(raw_, room.data(), room.size(), stored.data(), stored.size());
    }
    bool decode(std::span<const std::byte> stored, std::span<std::byte> plain) override {
        const std::size_t made = decode_to(stored, plain);
        return ZSTD_isError(made) == 0 && made == plain.size();
    }

  private:
    ZSTD_DCtx* raw_;
};

class Zstd final : public Stage {
  public:
    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState* state) const override {
        const std::size_t made = static_cast<ZstdContext*>(state)->decode_to(stored, room);
        if (ZSTD_isError(made) == 0) return {room.first(made)};
        return {{}, std::string("its zstd frame cannot be decoded to the ") + std::to_string(room.size()) +
                        " bytes of its shape: " + ZSTD_getErrorName(made)};
    }
    std::unique_ptr<StageState> make_state() const override { return std::make_unique<ZstdContext>(); }
    // Of zstd: 128 KiB by 3 bytes.
    std::uint64_t most_ratio() const override { return 50'000; }
};

}  // namespace

StagePtr make_zstd(const Values&) { return std::make_unique<Zstd>(); }
std::unique_ptr<BlockDecoder> make_zstd_block() { return std::make_unique<ZstdContext>(); }

}  // namespace penstock::data
