// LZ4 by liblz4, in the framings that decode/codecs/lz4.cpp describes.
#include <lz4.h>

#include <algorithm>
#include <cstring>

#include "data/encode/step.hpp"

namespace penstock::data {
namespace {

constexpr std::uint64_t kLz4BlockBytes = std::uint64_t{1} << 30;  // as HDF5's filter cuts them
constexpr std::size_t kSizeBytes = 8, kNumberBytes = 4;

// Bytes that it made in the room; 0: there was too little of it.
std::size_t pack(std::span<const std::byte> plain, std::span<std::byte> room) {
    const int limit = static_cast<int>(std::min<std::size_t>(room.size(), LZ4_MAX_INPUT_SIZE));
    return static_cast<std::size_t>(LZ4_compress_default(reinterpret_cast<const char*>(plain.data()),
                                                         reinterpret_cast<char*>(room.data()),
                                                         static_cast<int>(plain.size()), limit));
}

void put_big(std::span<std::byte> to, std::uint64_t number) {
    for (std::size_t i = to.size(); i-- > 0; number >>= 8) to[i] = static_cast<std::byte>(number & 0xff);
}

class Hdf5Lz4Step final : public EncodeStep {
  public:
    Encoded apply(std::span<const std::byte> plain, std::span<std::byte> room, StageState*) const override {
        const std::uint64_t block_bytes = std::clamp<std::uint64_t>(plain.size(), 1, kLz4BlockBytes);
        put_big(room.first(kSizeBytes), plain.size());
        put_big(room.subspan(kSizeBytes, kNumberBytes), block_bytes);
        std::size_t at = kSizeBytes + kNumberBytes;
        for (std::span<const std::byte> left = plain; !left.empty();) {
            const std::span<const std::byte> block = left.first(std::min<std::uint64_t>(block_bytes, left.size()));
            // A block that becomes no shorter is stored as it is.
            std::size_t made = pack(block, room.subspan(at + kNumberBytes, block.size() - 1));
            if (made == 0) {
                made = block.size();
                std::memcpy(room.data() + at + kNumberBytes, block.data(), made);
            }
            put_big(room.subspan(at, kNumberBytes), made);
            at += kNumberBytes + made;
            left = left.subspan(block.size());
        }
        return {at};
    }
    std::uint64_t most_bytes(std::uint64_t plain) const override {
        return kSizeBytes + kNumberBytes + plain + kNumberBytes * (plain / kLz4BlockBytes + 1);
    }
};

class SizedLz4Step final : public EncodeStep {
  public:
    Encoded apply(std::span<const std::byte> plain, std::span<std::byte> room, StageState*) const override {
        if (plain.size() > LZ4_MAX_INPUT_SIZE) return {0, "a chunk of lz4 has at most 2113929216 bytes"};
        for (std::size_t i = 0; i < kNumberBytes; ++i) room[i] = static_cast<std::byte>(plain.size() >> 8 * i & 0xff);
        return {kNumberBytes + pack(plain, room.subspan(kNumberBytes))};
    }
    std::uint64_t most_bytes(std::uint64_t plain) const override { return kNumberBytes + plain + plain / 255 + 16; }
};

}  // namespace

EncodeStepPtr make_hdf5_lz4_blocks(const Values&) { return std::make_unique<Hdf5Lz4Step>(); }
EncodeStepPtr make_lz4_behind_size(const Values&) { return std::make_unique<SizedLz4Step>(); }

}  // namespace penstock::data
