// ChunkReads: bytes of decoded chunks for one read: of chunks that an earlier read left, or decoded here and now.
//
// A read that needs one chunk, or few small ones, gains nothing from other cores. Reading and decoding them on the
// calling thread takes a tenth of what making a plan and a transfer does. Of more chunks, up to kMostAhead bytes, all
// cores read and decode a share first: prepare(). A chunk that is wanted whole is decoded to its place. What must stay
// true: what is not simple (long streams, more chunks, bytes that are not in the page cache, damage) is left to a
// transfer, which tells the error.
//
// Decoded chunks are kept for later reads: one of which a part was taken, at once, because its next part is likely to
// follow; one that was taken whole, when it is read whole again, and only where decoding takes longer than a copy. What
// is kept was never in memory of the caller, which other threads may write to.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "context/state.hpp"
#include "data/decode/pipeline.hpp"
#include "data/decode/read_chunks.hpp"
#include "data/layout/layout.hpp"
#include "python/core/small/tally.hpp"

namespace penstock::python {

struct ChunkSource {
    // By its number among those that are stored: a decoded chunk as bytes; (file offset, bytes, skipped filters) of one
    // that is to be decoded; or None.
    nb::object find{};
    nb::object find_all{};  // as find, of a list of numbers: a list, or None where find gives None for one
    nb::object keep{};   // (number, decoded chunk): for later reads
    nb::object again{};  // (list of numbers) of chunks that are decoded whole now: those that were so lately
    nb::object pipeline{};
    std::string decoder{};  // as evidence says it
    std::uint64_t chunk_bytes = 0;  // 0: chunks are stored as they are read
    bool is_staged = false;         // the host does not reach the memory that is read to
    mutable bool decodes_slowly = true;  // the last read did, so that a copy is faster; guarded by the GIL
};

// What a read of decoded chunks consists of.
struct ChunkPieces {
    std::span<const data::FileRun> runs;
    std::span<const data::RowCopy> copies{};  // after the runs
};

// A share of the cores, of all calls that have one now: each would otherwise want as many threads as there are cores.
class ShareOfCores {
  public:
    explicit ShareOfCores(context::ContextState& state)
        : calls_(state.decoding),
          crew_(state.crew),
          threads_(std::max(1U, state.machine().cpus / (calls_.fetch_add(1) + 1))) {}
    ~ShareOfCores() { calls_.fetch_sub(1); }
    ShareOfCores(const ShareOfCores&) = delete;
    ShareOfCores& operator=(const ShareOfCores&) = delete;
    data::CoreOptions options() const noexcept { return {.threads = threads_, .crew = &crew_}; }

  private:
    std::atomic<unsigned>& calls_;
    os::Crew& crew_;
    unsigned threads_;
};

// Memory in front of that of a GPU, as Engine::lend gives it. Lets go of the GIL: to register memory and to end idle
// paths takes milliseconds.
engine::EnginePool::LentStaging lend_staging(context::ContextState& state, std::uint64_t bytes);

// Requires: the GIL, for all of it. It is let go of while bytes are read and decoded.
class ChunkReads {
  public:
    enum class Found { absent, not_open, here };
    static constexpr std::uint64_t kMostAhead = 16 * kMiB;  // decoded; as many bytes are kept for later reads
    ChunkReads(const ChunkSource& source, const File* file, context::ContextState& state)
        : source_(source), file_(file), share_(state) {}
    ~ChunkReads() {
        for (Py_buffer& one : borrowed_) PyBuffer_Release(&one);
    }
    ChunkReads(const ChunkReads&) = delete;
    ChunkReads& operator=(const ChunkReads&) = delete;

    // Bytes of the dataset, whose chunks count as if they lay side by side. `to`: memory of the host, where memory
    // offset 0 is. not_open: a chunk must be decoded, and there is no file.
    Found take(const ChunkPieces& pieces, std::byte* to);
    bool decoded_any() const noexcept { return !streams_.empty() || decoded_ahead_; }
    void keep() const;  // chunks for later reads
    void count(SmallTally& tally) const;

  private:
    struct Made {
        std::uint64_t number;
        nb::object chunk;
    };
    struct Here {
        const std::byte* data;  // null: it went straight to its place
        bool is_fresh;          // decoded by this read
    };
    struct Wanted {
        std::vector<std::uint64_t> numbers{};
        std::vector<data::StreamPlace> places{};
        std::vector<std::uint32_t> skipped{};
        std::uint64_t met_bytes = 0;                     // of all chunks that are needed, decoded
        std::map<std::uint64_t, std::uint64_t> wholes{};  // chunks that are wanted whole, and where in memory
    };
    // Before copy() of these runs: finds the chunks that they need, and decodes those that no read has left, if those
    // are many.
    Found prepare(std::span<const data::FileRun> runs, std::byte* to);
    Found copy_all(const ChunkPieces& pieces, std::byte* to);
    Found copy(std::uint64_t from, std::uint64_t bytes, std::byte* to);
    Found look_for(std::span<const data::FileRun> runs, Wanted& wanted);
    bool decode_ahead(const Wanted& wanted, std::byte* to);
    std::byte* new_chunk(std::uint64_t number);
    Found find(std::uint64_t number, std::byte* whole);
    Found borrow(std::uint64_t number, const nb::object& chunk);
    void ask_again(const std::vector<std::uint64_t>& numbers);
    Found decode(std::uint64_t number, nb::handle place, std::byte* whole);
    bool read_stream(std::uint64_t offset, std::span<std::byte> stream);

    const ChunkSource& source_;
    const File* file_;
    const ShareOfCores share_;
    std::list<Py_buffer> borrowed_{};
    std::map<std::uint64_t, Here> here_{};  // chunks, which borrowed_ and made_ hold
    Here now_{};  // chunk number_
    std::uint64_t number_ = 0;
    std::uint64_t kept_bytes_ = 0, fresh_bytes_ = 0;
    std::vector<Made> made_;
    std::set<std::uint64_t> wholes_;  // chunks of which nothing is left for another read of a part
    std::set<std::uint64_t> again_;   // those of them that were read so lately, too
    std::chrono::steady_clock::duration decoding_{};  // the reads of streams with it
    std::uint64_t decoded_bytes_ = 0;                 // in that time
    data::RunsMoved moved_{};  // by prepare()
    bool decoded_ahead_ = false;
    bool copies_alone_ = false;  // many bytes, of chunks that are all here: copies ask Python nothing
    std::vector<std::uint64_t> streams_;
    std::vector<SmallRead> reads_;
};

}  // namespace penstock::python
