// Deflate by libdeflate, in the framing of zlib (RFC 1950) and of gzip (RFC 1952). Noise in front of a chunk is stored.
#include <libdeflate.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "data/encode/codecs/stored_prefix.hpp"
#include "data/encode/step.hpp"

namespace penstock::data {
namespace {

constexpr int kMostDeflateLevel = 12;

// What stands around a stream of deflate.
struct Framing {
    std::size_t (*compress)(libdeflate_compressor*, const void*, std::size_t, void*, std::size_t);
    std::size_t (*bound)(libdeflate_compressor*, std::size_t);
    std::span<const std::uint8_t> head;
    std::size_t (*put_end)(std::span<const std::byte> plain, std::byte* room);  // returns its bytes
};

constexpr std::uint8_t kZlibHead[] = {0x78, 0x01};
constexpr std::uint8_t kGzipHead[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};  // no name, no time, of no system

std::size_t put_adler(std::span<const std::byte> plain, std::byte* room) {
    const std::uint32_t sum = libdeflate_adler32(1, plain.data(), plain.size());
    for (std::size_t i = 0; i < 4; ++i) room[i] = static_cast<std::byte>(sum >> (24 - 8 * i) & 0xff);
    return 4;
}

std::size_t put_crc_and_length(std::span<const std::byte> plain, std::byte* room) {
    const std::uint32_t sum = libdeflate_crc32(0, plain.data(), plain.size());
    for (std::size_t i = 0; i < 4; ++i) room[i] = static_cast<std::byte>(sum >> 8 * i & 0xff);
    for (std::size_t i = 0; i < 4; ++i) room[4 + i] = static_cast<std::byte>(plain.size() >> 8 * i & 0xff);
    return 8;
}

constexpr std::size_t kMostEnd = 8;

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
    DeflateStep(int level, const Framing& framing) : level_(level), framing_(framing) {}

    Encoded apply(std::span<const std::byte> plain, std::span<std::byte> room, StageState* state) const override {
        libdeflate_compressor* const raw = static_cast<const Compressor*>(state)->raw();
        const std::size_t prefix = stored_prefix(plain, [&](std::span<const std::byte> some) {
            const auto made = libdeflate_deflate_compress(raw, some.data(), some.size(), room.data(), room.size());
            return made == 0 ? some.size() : made;
        });
        const std::size_t made = prefix == 0
                                     ? framing_.compress(raw, plain.data(), plain.size(), room.data(), room.size())
                                     : behind_prefix(raw, {plain.first(prefix), plain.subspan(prefix)}, room);
        if (made == 0) return {0, "libdeflate made more bytes of it than it says it ever does"};
        return {made};
    }
    std::unique_ptr<StageState> make_state() const override { return std::make_unique<Compressor>(level_); }
    std::uint64_t most_bytes(std::uint64_t plain) const override {
        return framing_.bound(nullptr, plain) + (stored_bytes(plain) - plain) + kMostEnd;
    }

  private:
    // Both parts lie one behind the other.
    struct Parts {
        std::span<const std::byte> stored, rest;
    };
    std::size_t behind_prefix(libdeflate_compressor* raw, const Parts& parts, std::span<std::byte> room) const {
        std::byte* const begin = room.data() + framing_.head.size();
        std::memcpy(room.data(), framing_.head.data(), framing_.head.size());
        put_stored(parts.stored, begin);
        std::byte* const rest = begin + stored_bytes(parts.stored.size());
        const std::size_t left = room.size() - static_cast<std::size_t>(rest - room.data()) - kMostEnd;
        const std::size_t made = libdeflate_deflate_compress(raw, parts.rest.data(), parts.rest.size(), rest, left);
        if (made == 0) return 0;
        std::byte* const end = rest + made;
        const std::span<const std::byte> plain(parts.stored.data(), parts.stored.size() + parts.rest.size());
        return static_cast<std::size_t>(end - room.data()) + framing_.put_end(plain, end);
    }

    int level_;
    Framing framing_;
};

constexpr Framing kZlib{&libdeflate_zlib_compress, &libdeflate_zlib_compress_bound, kZlibHead, &put_adler};
constexpr Framing kGzip{&libdeflate_gzip_compress, &libdeflate_gzip_compress_bound, kGzipHead, &put_crc_and_length};

}  // namespace

EncodeStepPtr make_deflating(const Values& values) {
    return std::make_unique<DeflateStep>(level_of("deflate", values, kMostDeflateLevel), kZlib);
}
EncodeStepPtr make_gzipping(const Values& values) {
    return std::make_unique<DeflateStep>(level_of("gzip", values, kMostDeflateLevel), kGzip);
}

}  // namespace penstock::data
