// Chunks that are read by the threads that decode them.
//
// Where a file lies in the page cache, its bytes cost a copy, and who decodes them next then has them in the cache of
// his core. A queue in front of the cores would let them wait for the first batch that it fills, and at the end of
// each. Bytes that are not in the page cache are left to a transfer, which keeps many reads under way. What must stay
// true: no thread waits here for storage, which may never answer, so that deadlines and cancelling hold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/decode/decode_chunks.hpp"
#include "data/rows/run_reads.hpp"
#include "penstock/context.hpp"

namespace penstock::data {

struct StreamPlace {
    std::uint64_t offset = 0, bytes = 0;  // in the file, as they are stored
};

struct ChunksOfFile {
    const File& file;
    std::span<const StreamPlace> places;  // of the chunks of a ChunkWork, whose own bytes are not looked at
    std::size_t most_left = 0;  // to a transfer, while the others are decoded: one more ends the work
};

struct ChunksRead {
    CoreResult decoded;
    bool left = false;               // a transfer has to read what is not done, or to say why it cannot
    RunsMoved reads;
    std::vector<std::uint8_t> done;  // of each chunk: whether its boxes are in their places
};

// Throws as decode_chunks.
ChunksRead read_and_decode(const ChunksOfFile& from, const ChunkWork& work, const CoreOptions& options);

}  // namespace penstock::data
