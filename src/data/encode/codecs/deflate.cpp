// Deflate by libdeflate, and by ISA-L where the build has it: level 1, and at all levels the runs of one byte in front
// of a chunk. In the framing of zlib (RFC 1950) and of gzip (RFC 1952). Noise in front of a chunk is stored.
#include <libdeflate.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <new>

#include "data/encode/codecs/fast_deflate.hpp"
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

// Shorter data are for libdeflate: a look at them would cost too much.
constexpr std::size_t kFastFrom = std::size_t{256} << 10;
constexpr std::size_t kLookBack = std::size_t{32} << 10;  // of deflate
// So many bytes are looked for again, so far apart. Fewer values than these repeat by chance, which ISA-L finds.
constexpr std::size_t kAnchorBytes = 64, kAnchorsApart = std::size_t{128} << 10, kFewValues = 4;

// Whether noise that repeats is likely: bytes of several values come again within what deflate looks back.
bool has_noise_that_repeats(std::span<const std::byte> plain) {
    for (std::size_t at = kAnchorsApart / 2; at + 2 * kAnchorBytes <= plain.size(); at += kAnchorsApart) {
        const auto anchor = plain.subspan(at, kAnchorBytes);
        std::bitset<256> values;
        for (const std::byte one : anchor) values.set(std::to_integer<std::size_t>(one));
        if (values.count() < kFewValues) continue;
        const auto behind = plain.subspan(at + 1, std::min(kLookBack + kAnchorBytes, plain.size() - at - 1));
        if (::memmem(behind.data(), behind.size(), anchor.data(), anchor.size()) != nullptr) return true;
    }
    return false;
}

class Compressor final : public StageState {
  public:
    explicit Compressor(int level)
        : fast_(level <= kFastLevel ? make_fast_deflate() : nullptr),
          makes_all_fast_(fast_ != nullptr),
          raw_(libdeflate_alloc_compressor(level)) {
        if (raw_ == nullptr) throw std::bad_alloc();
    }
    ~Compressor() override { libdeflate_free_compressor(raw_); }
    Compressor(const Compressor&) = delete;
    Compressor& operator=(const Compressor&) = delete;
    libdeflate_compressor* raw() const noexcept { return raw_; }
    // Whether ISA-L may make all of it, or begin it.
    bool may_be_fast(std::span<const std::byte> plain) const { return makes_all_fast_ || runs_prefix(plain) != 0; }
    // A raw stream; its bytes, or 0 where the room is too small.
    std::size_t compress(std::span<const std::byte> plain, std::span<std::byte> room) {
        if (makes_all_fast_ && plain.size() >= kFastFrom && !has_noise_that_repeats(plain)) {
            if (const std::size_t made = fast_->compress(plain, room); made != 0) return made;
        }
        const std::size_t runs = runs_prefix(plain);
        const std::size_t begun = runs == 0 ? 0 : begin_fast(plain.first(runs), room);
        if (begun == 0) return compress_rest(plain, room);
        const std::size_t made = compress_rest(plain.subspan(runs), room.subspan(begun));
        return made == 0 ? 0 : begun + made;
    }

  private:
    std::size_t compress_rest(std::span<const std::byte> plain, std::span<std::byte> room) const {
        return libdeflate_deflate_compress(raw_, plain.data(), plain.size(), room.data(), room.size());
    }

    // Its tables are made where the first chunk begins so.
    std::size_t begin_fast(std::span<const std::byte> plain, std::span<std::byte> room) {
        if (!fast_) fast_ = make_fast_deflate();
        return fast_ ? fast_->begin(plain, room) : 0;
    }

    std::unique_ptr<FastDeflate> fast_;
    const bool makes_all_fast_;
    libdeflate_compressor* raw_;
};

class DeflateStep final : public EncodeStep {
  public:
    DeflateStep(int level, const Framing& framing) : level_(level), framing_(framing) {}

    Encoded apply(std::span<const std::byte> plain, std::span<std::byte> room, StageState* state) const override {
        auto& own = *static_cast<Compressor*>(state);
        const std::size_t prefix = stored_prefix(plain, [&](std::span<const std::byte> some) {
            const std::size_t made = own.compress(some, room);
            return made == 0 ? some.size() : made;
        });
        const bool is_usual = prefix == 0 && !own.may_be_fast(plain);
        const std::size_t made =
            is_usual ? framing_.compress(own.raw(), plain.data(), plain.size(), room.data(), room.size())
                     : behind_prefix(own, {plain.first(prefix), plain.subspan(prefix)}, room);
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
    std::size_t behind_prefix(Compressor& own, const Parts& parts, std::span<std::byte> room) const {
        std::byte* const begin = room.data() + framing_.head.size();
        std::memcpy(room.data(), framing_.head.data(), framing_.head.size());
        put_stored(parts.stored, begin);
        std::byte* const rest = begin + stored_bytes(parts.stored.size());
        const std::size_t left = room.size() - static_cast<std::size_t>(rest - room.data()) - kMostEnd;
        const std::size_t made = own.compress(parts.rest, {rest, left});
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
