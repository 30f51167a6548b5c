// Zstandard by libzstd: one frame of RFC 8878, which says how long its content is.
#include <zstd.h>

#include <new>

#include "data/encode/step.hpp"

namespace penstock::data {
namespace {

constexpr int kMostZstdLevel = 22;

class ZstdCompressor final : public StageState {
  public:
    ZstdCompressor() : raw_(ZSTD_createCCtx()) {
        if (raw_ == nullptr) throw std::bad_alloc();
    }
    ~ZstdCompressor() override { ZSTD_freeCCtx(raw_); }
    ZstdCompressor(const ZstdCompressor&) = delete;
    ZstdCompressor& operator=(const ZstdCompressor&) = delete;
    ZSTD_CCtx* raw() const noexcept { return raw_; }

  private:
    ZSTD_CCtx* raw_;
};

class ZstdStep final : public EncodeStep {
  public:
    explicit ZstdStep(int level) : level_(level) {}
    Encoded apply(std::span<const std::byte> plain, std::span<std::byte> room, StageState* state) const override {
        ZSTD_CCtx* const raw = static_cast<const ZstdCompressor*>(state)->raw();
        const std::size_t made =
            ZSTD_compressCCtx(raw, room.data(), room.size(), plain.data(), plain.size(), level_);
        if (ZSTD_isError(made) != 0) return {0, std::string("libzstd cannot: ") + ZSTD_getErrorName(made)};
        return {made};
    }
    std::unique_ptr<StageState> make_state() const override { return std::make_unique<ZstdCompressor>(); }
    std::uint64_t most_bytes(std::uint64_t plain) const override { return ZSTD_compressBound(plain); }

  private:
    int level_;
};

}  // namespace

EncodeStepPtr make_zstandard(const Values& values) {
    return std::make_unique<ZstdStep>(level_of("zstd", values, kMostZstdLevel));
}

}  // namespace penstock::data
