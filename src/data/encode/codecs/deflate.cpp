// Deflate by libdeflate, in the framing of zlib (RFC 1950) and of gzip (RFC 1952).
#include <libdeflate.h>

#include <new>

#include "data/encode/step.hpp"

namespace penstock::data {
namespace {

constexpr int kMostDeflateLevel = 12;

using Compress = std::size_t (*)(libdeflate_compressor*, const void*, std::size_t, void*, std::size_t);
using Bound = std::size_t (*)(libdeflate_compressor*, std::size_t);

class Compressor final : public StageState {
  public:
    explicit Compressor(int level) : raw_(libdeflate_alloc_compressor(level)) {
        if (raw_ == nullptr) throw std::bad_alloc();
    }
    ~Compressor() override { libdeflate_free_compressor(raw_); }
    Compressor(const Compressor&) = delete;
    Compressor& operator=(const Compressor&) = delete;
    libdeflate_compressor* raw() const noexcept { return raw_; }

  private:
    libdeflate_compressor* raw_;
};

class DeflateStep final : public EncodeStep {
  public:
    DeflateStep(int level, Compress compress, Bound bound) : level_(level), compress_(compress), bound_(bound) {}

    Encoded apply(std::span<const std::byte> plain, std::span<std::byte> room, StageState* state) const override {
        libdeflate_compressor* const raw = static_cast<const Compressor*>(state)->raw();
        const std::size_t made = compress_(raw, plain.data(), plain.size(), room.data(), room.size());
        if (made == 0) return {0, "libdeflate made more bytes of it than it says it ever does"};
        return {made};
    }
    std::unique_ptr<StageState> make_state() const override { return std::make_unique<Compressor>(level_); }
    std::uint64_t most_bytes(std::uint64_t plain) const override { return bound_(nullptr, plain); }

  private:
    int level_;
    Compress compress_;
    Bound bound_;
};

}  // namespace

EncodeStepPtr make_deflating(const Values& values) {
    return std::make_unique<DeflateStep>(level_of("deflate", values, kMostDeflateLevel), &libdeflate_zlib_compress,
                                         &libdeflate_zlib_compress_bound);
}
EncodeStepPtr make_gzipping(const Values& values) {
    return std::make_unique<DeflateStep>(level_of("gzip", values, kMostDeflateLevel), &libdeflate_gzip_compress,
                                         &libdeflate_gzip_compress_bound);
}

}  // namespace penstock::data
