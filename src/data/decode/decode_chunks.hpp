// Decodes many chunks at a time, on all cores, and places the elements that are wanted.
//
// The calling thread decodes too. Others help it for the time of the call, so that none is left behind and none is
// there after fork(). Each decodes into memory of its own and copies boxes out of it; a chunk that is wanted as it is
// decodes straight to its place. Ensures: after the return nothing is written any more; between two chunks a worker
// looks whether the work was stopped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/decode/pipeline.hpp"
#include "penstock/box.hpp"
#include "penstock/types.hpp"

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

struct DecodeOptions {
    unsigned threads = 0;                        // the calling one included; 0: one for each CPU of this process
    Deadline deadline = Deadline::never();
    const std::atomic<bool>* stopped = nullptr;  // set by another thread to end the work
};

struct DecodeResult {
    std::size_t done = 0;  // chunks; all, unless the work was stopped or one is damaged
    std::optional<std::pair<std::size_t, std::string>> fault{};  // the first chunk that was found damaged, and how
};

// Throws std::bad_alloc when there is no memory for a chunk.
DecodeResult decode_chunks(const Pipeline& pipeline, std::span<const StoredChunk> chunks,
                           std::span<const PlacedBox> boxes, const DecodeOptions& options);

}  // namespace penstock::data
