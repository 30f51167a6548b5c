// Decoded chunks that are kept for the next read: rows of one chunk, read one after the other, decode it once.
//
// 1. KeptChunks: of one open file, the latest used. Readers of all its datasets share it, and no reader waits for
//    another longer than a search takes.
// 2. LatelyRead: which chunks of one dataset were read whole a short time ago. Those that are not read again soon would
//    take others' place.
//
// What must stay true: memory is bounded, that of what is noted about chunks too; a chunk that was found stays as long
// as whoever found it holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace penstock::data {

// Of one file. Chunks that are decoded alike, of one file in one state, are a kind; whoever asks numbers the kinds.
struct ChunkKey {
    std::uint64_t kind = 0;
    std::uint64_t offset = 0, bytes = 0;  // in the file, as it is stored
    std::int64_t skipped = 0;             // as in StoredStream
    bool operator==(const ChunkKey&) const = default;
};

struct DecodedChunk {
    std::shared_ptr<const std::byte[]> data{};  // null: there is none
    std::uint64_t bytes = 0;
};

struct KeptLimits {
    std::uint64_t bytes = 0;   // of all chunks
    std::uint64_t chunks = 0;  // each takes some 150 bytes beside its own
};

// Safe to call from several threads.
class KeptChunks {
  public:
    explicit KeptChunks(KeptLimits limits) : limits_(limits) {}
    const KeptLimits& limits() const noexcept { return limits_; }

    DecodedChunk find(const ChunkKey& key);
    // As find(), of each; one after the other takes longer.
    std::vector<DecodedChunk> find_all(std::span<const ChunkKey> keys);
    void keep(const ChunkKey& key, DecodedChunk chunk);
    // Lets go of all. What reads that are under way decode is not kept any more.
    void close();
    std::size_t size() const;

  private:
    struct KeptChunk {
        ChunkKey key;
        DecodedChunk chunk;
    };
    struct Hash {
        std::size_t operator()(const ChunkKey& key) const noexcept;
    };
    DecodedChunk find_locked(const ChunkKey& key);

    const KeptLimits limits_;
    mutable std::mutex mutex_;
    std::list<KeptChunk> chunks_{};  // the latest used last
    std::unordered_map<ChunkKey, std::list<KeptChunk>::iterator, Hash> places_{};
    std::uint64_t bytes_ = 0;
    bool is_closed_ = false;
};

// Safe to call from several threads. By two sets of numbers: an order of them takes ten times as long. What it
// remembers is between a half and all of what may be kept.
class LatelyRead {
  public:
    LatelyRead(std::uint64_t chunk_bytes, const KeptLimits& limits);  // of chunks of 1 byte and more
    // Of chunks that are read whole now: those that were so lately.
    std::vector<std::uint64_t> again(std::span<const std::uint64_t> numbers);
    std::size_t size() const;  // of what it remembers

  private:
    const std::size_t most_;
    mutable std::mutex mutex_;
    std::unordered_set<std::uint64_t> now_{}, before_{};
};

}  // namespace penstock::data
