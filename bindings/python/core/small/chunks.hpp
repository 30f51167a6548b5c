// ChunkReads: bytes of decoded chunks for one small read: of chunks that an earlier read left, or decoded here and now.
//
// A read that needs one chunk, or few small ones, gains nothing from other cores. Reading and decoding them on the
// calling thread takes a tenth of what making a plan and a transfer does. What must stay true: what is not simple (long
// streams, many chunks, damage) is left to a transfer, which tells the error.
#pragma once

#include <string>
#include <vector>

#include "data/decode/pipeline.hpp"
#include "python/core/small/tally.hpp"

namespace penstock::python {

struct ChunkSource {
    // By its number among those that are stored: a decoded chunk as bytes; (file offset, bytes, skipped filters) of one
    // that is to be decoded; or None.
    nb::object find{};
    nb::object keep{};  // (number, decoded chunk): for later reads
    nb::object pipeline{};
    std::string decoder{};  // as evidence says it
    std::uint64_t chunk_bytes = 0;  // 0: chunks are stored as they are read
};

// Requires: the GIL, for all of it. It is let go of while bytes are read and decoded.
class ChunkReads {
  public:
    enum class Found { absent, not_open, here };
    ChunkReads(const ChunkSource& source, const File* file) : source_(source), file_(file) {}
    ~ChunkReads() { release(); }
    ChunkReads(const ChunkReads&) = delete;
    ChunkReads& operator=(const ChunkReads&) = delete;

    // Bytes of the dataset, whose chunks count as if they lay side by side. not_open: a chunk must be decoded, and
    // there is no file.
    Found copy(std::uint64_t from, std::uint64_t bytes, std::byte* to);
    bool decoded_any() const noexcept { return !streams_.empty(); }
    void keep() const;  // chunks of which a part was taken
    void count(SmallTally& tally) const;

  private:
    struct Made {
        std::uint64_t number;
        nb::object chunk;
    };
    Found find(std::uint64_t number, std::byte* whole);
    Found decode(std::uint64_t number, nb::handle place, std::byte* whole);
    bool read_stream(std::uint64_t offset, std::span<std::byte> stream);
    void release() noexcept;

    const ChunkSource& source_;
    const File* file_;
    Py_buffer view_{};
    bool borrowed_ = false, is_fresh_ = false;
    const std::byte* data_ = nullptr;  // of chunk number_; null: it went straight to its place, or there is none
    std::uint64_t number_ = 0;
    std::uint64_t kept_bytes_ = 0, fresh_bytes_ = 0;
    std::vector<Made> made_;
    std::vector<std::uint64_t> streams_;
    std::vector<SmallRead> reads_;
};

}  // namespace penstock::python
