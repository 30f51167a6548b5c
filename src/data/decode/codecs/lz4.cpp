// LZ4 by liblz4, in the framings of HDF5 and of numcodecs.
//
// HDF5 (filter 32004), big-endian: bytes of the chunk (8), of a block (4), and for each block its stored bytes (4) and
// itself; a block that is as long as what it stands for is stored as it is. numcodecs: bytes of the chunk (4,
// little-endian) and one block.
#include <lz4.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "data/decode/codecs/block.hpp"
#include "data/decode/fields.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kMostOfBlock = std::numeric_limits<int>::max();

class Lz4Block final : public BlockDecoder {
  public:
    bool decode(std::span<const std::byte> stored, std::span<std::byte> plain) override {
        if (stored.size() > kMostOfBlock || plain.size() > kMostOfBlock) return false;
        const int made = LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()),
                                             reinterpret_cast<char*>(plain.data()), static_cast<int>(stored.size()),
                                             static_cast<int>(plain.size()));
        return made >= 0 && static_cast<std::size_t>(made) == plain.size();
    }
};

std::string too_long(std::uint64_t bytes, std::span<const std::byte> room) {
    return "it decodes to " + std::to_string(bytes) + " bytes, more than the " + std::to_string(room.size()) +
           " of its shape";
}

class Hdf5Lz4 final : public Stage {
  public:
    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState*) const override {
        Fields fields(stored, ByteOrder::big);
        const std::uint64_t bytes = fields.number(8), block_bytes = fields.number(4);
        if (bytes > room.size()) return {{}, too_long(bytes, room)};
        if (bytes != 0 && block_bytes == 0) return {{}, "its lz4 blocks have no bytes"};
        std::span<std::byte> left = room.first(bytes);
        while (!left.empty() && !fields.ended_early()) {
            const std::span<std::byte> plain = left.first(std::min<std::uint64_t>(block_bytes, left.size()));
            const std::span<const std::byte> block = fields.take(fields.number(4));
            if (block.size() == plain.size()) {
                std::memcpy(plain.data(), block.data(), plain.size());
            } else if (!Lz4Block().decode(block, plain)) {
                break;
            }
            left = left.subspan(plain.size());
        }
        if (!left.empty() || fields.ended_early()) return {{}, "its lz4 block is damaged, or was cut short"};
        return {room.first(bytes)};
    }
    // Of lz4: 255 bytes by one more byte.
    std::uint64_t most_ratio() const override { return 256; }
};

class SizedLz4 final : public Stage {
  public:
    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState*) const override {
        Fields fields(stored, ByteOrder::little);
        const std::uint64_t bytes = fields.number(4);
        if (bytes > room.size()) return {{}, too_long(bytes, room)};
        if (fields.ended_early() || !Lz4Block().decode(fields.left(), room.first(bytes))) {
            return {{}, "its lz4 block is damaged, or was cut short"};
        }
        return {room.first(bytes)};
    }
    // Of lz4: 255 bytes by one more byte.
    std::uint64_t most_ratio() const override { return 256; }
};

}  // namespace

StagePtr make_hdf5_lz4(const Values&) { return std::make_unique<Hdf5Lz4>(); }
StagePtr make_sized_lz4(const Values&) { return std::make_unique<SizedLz4>(); }
std::unique_ptr<BlockDecoder> make_lz4_block() { return std::make_unique<Lz4Block>(); }

}  // namespace penstock::data
