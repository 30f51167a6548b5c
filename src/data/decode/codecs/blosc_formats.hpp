// The codecs that a buffer of blosc may name, by their number in its flags.
#pragma once

#include <array>

#include "data/decode/codecs/block.hpp"

namespace penstock::data {

inline constexpr std::size_t kBloscFormats = 5;  // blosclz, lz4, snappy, zlib, zstd

class BloscFormats {
  public:
    // nullptr: one that is not known here. Throws Error{unsupported} in a build without its library.
    BlockDecoder* decoder(std::size_t format) {
        using Make = std::unique_ptr<BlockDecoder> (*)();
        constexpr Make kMakers[kBloscFormats] = {&make_blosclz_block, &make_lz4_block, nullptr, &make_zlib_block,
                                                 &make_zstd_block};
        if (format >= kBloscFormats || kMakers[format] == nullptr) return nullptr;
        if (decoders_[format] == nullptr) decoders_[format] = kMakers[format]();
        return decoders_[format].get();
    }
    // Throws where a library is missing.
    void need_all() {
        for (std::size_t format = 0; format < kBloscFormats; ++format) decoder(format);
    }

  private:
    std::array<std::unique_ptr<BlockDecoder>, kBloscFormats> decoders_{};
};

}  // namespace penstock::data
