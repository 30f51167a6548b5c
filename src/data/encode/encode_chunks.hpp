// Encodes many chunks at a time, on all cores, from elements wherever they lie in memory of the host.
//
// Each thread puts the elements of a chunk together in memory of its own; a chunk that lies in one piece is encoded
// where it is. Ensures: memory is bounded by the shape of a chunk for each thread, whatever the elements are; after the
// return nothing is read or written any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/cores/on_cores.hpp"
#include "data/encode/encoder.hpp"
#include "penstock/box.hpp"

namespace penstock::data {

struct GatheredBox {
    Box box;                              // made by split_box; its destination is not looked at
    std::uint64_t destination_bytes = 0;  // where its first item lies in the chunk
};

// Requires: boxes lie in the chunk; the room has most_bytes() of the encoder, and no other chunk has a part of it.
struct PlainChunk {
    std::size_t first_box = 0;
    std::size_t boxes = 0;
    bool filled = false;  // with fill values first: the boxes leave a part of it
    std::span<std::byte> room{};
};

struct EncodeWork {
    const Encoder& encoder;
    std::span<const PlainChunk> chunks;
    std::span<const GatheredBox> boxes;
    std::span<const std::byte> fill;  // one item; empty: zeros
    std::span<std::uint64_t> sizes;   // of each chunk, encoded, when it is done
};

// A fault says why a chunk cannot be encoded. Throws std::bad_alloc when there is no memory for a chunk.
CoreResult encode_chunks(const EncodeWork& work, const CoreOptions& options);

}  // namespace penstock::data
