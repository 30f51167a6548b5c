// Chunks decoded to memory of a device that the host does not reach, through pinned memory. There are two ways:
//
// 1. A mirror: the pinned memory is as large as the target, chunks are decoded to their places in it, and each MiB goes
//    up when all of its chunks are there. The target has to be one run of bytes that the boxes fill.
// 2. Lanes: each thread decodes one chunk after the other to two places of its own, and a stream copies from the one
//    while the thread decodes to the other. For all other targets.
#pragma once

#include "data/decode/decode_chunks.hpp"

namespace penstock::data {

// As decode_chunks(). Requires: work.through.
CoreResult decode_through(const ChunkWork& work, const Items& items, const CoreOptions& options);

}  // namespace penstock::data
