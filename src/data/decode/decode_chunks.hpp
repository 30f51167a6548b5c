// Decodes many chunks at a time, on all cores, and places the elements that are wanted.
//
// Each thread decodes into memory of its own and copies boxes out of it; a chunk that is wanted as it is decodes
// straight to its place. For memory of a GPU each thread has two places in page-locked memory: the device copies out of
// one while the thread decodes into the other. Ensures: after the return nothing is written any more.
#pragma once

#include <cstddef>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/cores/on_cores.hpp"
#include "data/decode/pipeline.hpp"
#include "device/kept_streams.hpp"
#include "penstock/box.hpp"
#include "penstock/device.hpp"

namespace penstock::data {

struct PlacedBox {
    Box box;                         // made by split_box; its source is not looked at
    std::uint64_t source_bytes = 0;  // where its first item lies in the decoded chunk
};

// Requires: boxes of different chunks share no byte of their destinations; sources lie in the chunk.
struct StoredChunk {
    std::span<const std::byte> bytes{};
    std::uint32_t skipped = 0;  // as in StoredStream
    std::size_t first_box = 0;
    std::size_t boxes = 0;
    bool padded = false;  // as in StoredStream
};

// What chunks look like where they are stored, for one thread that decodes.
class ChunkStreams {
  public:
    virtual ~ChunkStreams() = default;
    // A chunk, without what it skipped, until the next call. None: it is left out, so not done; or `fault` says why it
    // cannot be had.
    virtual std::optional<StoredStream> of(std::size_t item, std::string& fault) = 0;
};

// Memory that the device reaches and the host need not. `staging`: pinned memory of the device, of at least a chunk.
// With two chunks for each thread no thread waits. With as many bytes as the target has, many chunks go up by one copy.
struct Through {
    Device& device;
    std::span<std::byte> staging;
    device::KeptStreams& streams;  // of the device
};

struct ChunkWork {
    const Pipeline& pipeline;
    std::span<const StoredChunk> chunks;
    std::span<const PlacedBox> boxes;
    const Through* through = nullptr;  // null: the host reaches the boxes' destinations
    std::function<std::unique_ptr<ChunkStreams>()> make_streams{};  // none: chunks have their bytes
    std::span<std::uint8_t> done{};    // if not empty, becomes 1 for each chunk that is done
    const std::atomic<bool>* ended = nullptr;  // if not null, ends the work as CoreOptions::stopped does
};

// A fault says how a chunk is damaged. Throws std::bad_alloc when there is no memory for a chunk, and Error when the
// device fails.
CoreResult decode_chunks(const ChunkWork& work, const CoreOptions& options);
CoreResult decode_chunks(const Pipeline& pipeline, std::span<const StoredChunk> chunks,
                         std::span<const PlacedBox> boxes, const CoreOptions& options);

}  // namespace penstock::data
