// Decodes many chunks at a time, on all cores, and places the elements that are wanted.
//
// Each thread decodes into memory of its own and copies boxes out of it; a chunk that is wanted as it is decodes
// straight to its place. Ensures: after the return nothing is written any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/cores/on_cores.hpp"
#include "data/decode/pipeline.hpp"
#include "penstock/box.hpp"

namespace penstock::data {

struct PlacedBox {
    Box box;                         // made by split_box; its source is not looked at
    std::uint64_t source_bytes = 0;  // where its first item lies in the decoded chunk
};

// Requires: boxes of different chunks share no byte of their destinations; sources lie in the chunk.
struct StoredChunk {
    std::span<const std::byte> bytes{};
    std::uint32_t skipped = 0;  // as Pipeline::decode takes it
    std::size_t first_box = 0;
    std::size_t boxes = 0;
};

// A fault says how a chunk is damaged. Throws std::bad_alloc when there is no memory for a chunk.
CoreResult decode_chunks(const Pipeline& pipeline, std::span<const StoredChunk> chunks,
                           std::span<const PlacedBox> boxes, const CoreOptions& options);

}  // namespace penstock::data
