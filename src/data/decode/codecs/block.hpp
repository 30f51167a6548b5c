// Codecs of blocks whose decoded size is known: what bitshuffle, blosc and framings of lz4 are made of.
//
// A BlockDecoder owns what its library needs, and serves one thread at a time. A maker throws Error{unsupported} with
// the library's name in a build without it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace penstock::data {

class BlockDecoder {
  public:
    virtual ~BlockDecoder() = default;
    // Returns whether the stored bytes decoded to exactly `plain`. Ensures: nothing outside it is written.
    virtual bool decode(std::span<const std::byte> stored, std::span<std::byte> plain) = 0;
};

std::unique_ptr<BlockDecoder> make_lz4_block();
std::unique_ptr<BlockDecoder> make_zstd_block();
std::unique_ptr<BlockDecoder> make_zlib_block();
std::unique_ptr<BlockDecoder> make_blosclz_block();

}  // namespace penstock::data
