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
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "context/state.hpp"
#include "data/decode/pipeline.hpp"
#include "data/decode/read_chunks.hpp"
#include "data/kept/chunk_places.hpp"
#include "data/kept/kept_chunks.hpp"
#include "data/layout/layout.hpp"
#include "python/core/small/tally.hpp"
#include "python/core/small/watched.hpp"

namespace penstock::python {

// Encoded chunks of one dataset. They count as if they lay side by side, decoded.
struct ChunkSource {
    // A dict of Python, see small.py.
    explicit ChunkSource(const nb::dict& coded);
    bool is_settled() const noexcept;

    mutable data::ChunkPlaces places;
    nb::object where;  // an unknown chunk lies, by its number: (file offset, bytes, mask), or None; needs the GIL
    std::shared_ptr<data::KeptChunks> kept;
    std::uint64_t kind;       // of the chunks, among those that are kept
    std::int64_t settles_ns;  // since 1970: what is read before then is not kept
    nb::object pipeline;      // whose memory is `steps`
    const data::Pipeline& steps;
    std::string decoder;  // as evidence says it
    std::uint64_t chunk_bytes;
    bool is_staged;  // the host does not reach the memory that is read to
    mutable data::LatelyRead lately;
    mutable std::atomic<bool> decodes_slowly{true};  // the last read did, so that a copy is faster
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

// Without the GIL, but for count(). It is taken only to ask Python where a chunk lies that no read has touched.
class ChunkReads {
  public:
    enum class Found { absent, not_open, here };
    static constexpr std::uint64_t kMostAhead = 16 * kMiB;  // decoded; as many bytes are kept for later reads
    ChunkReads(const ChunkSource& source, const File* file, const Context& context)
        : source_(source), file_(file), context_(context), share_(context::ContextState::of(context)),
          may_keep_(source.is_settled()) {}
    ChunkReads(const ChunkReads&) = delete;
    ChunkReads& operator=(const ChunkReads&) = delete;

    // Bytes of the dataset to memory, where memory offset 0 is: straight, or by staging memory. Keeps chunks for later
    // reads. not_open: a chunk must be decoded, and there is no file.
    Found put(const ChunkPieces& pieces, const MemoryView& memory, const Watched& watched);
    bool decoded_any() const noexcept { return !streams_.empty() || decoded_ahead_; }
    void count(SmallTally& tally) const;

  private:
    struct Made {
        std::uint64_t number;
        std::shared_ptr<const std::byte[]> chunk;
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
    Found take(const ChunkPieces& pieces, std::byte* to);
    void keep() const;
    // Before copy() of these runs: finds the chunks that they need, and decodes those that no read has left, if those
    // are many.
    Found prepare(std::span<const data::FileRun> runs, std::byte* to);
    Found copy(std::uint64_t from, std::uint64_t bytes, std::byte* to);
    Found look_for(std::span<const data::FileRun> runs, Wanted& wanted);
    bool decode_ahead(const Wanted& wanted, std::byte* to);
    std::byte* new_chunk(std::uint64_t number);
    Found find(std::uint64_t number, std::byte* whole);
    data::EncodedPlace place_of(std::uint64_t number);
    data::ChunkKey key_of(const data::EncodedPlace& place) const noexcept;
    Found borrow(std::uint64_t number, data::DecodedChunk&& chunk);
    void ask_again(const std::vector<std::uint64_t>& numbers);
    Found decode(std::uint64_t number, const data::EncodedPlace& place, std::byte* whole);
    bool read_stream(std::uint64_t offset, std::span<std::byte> stream);

    const ChunkSource& source_;
    const File* file_;
    const Context& context_;
    const ShareOfCores share_;
    const bool may_keep_;  // asked before the first byte is read: the next change has another time
    std::vector<data::DecodedChunk> borrowed_{};
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
    std::vector<std::uint64_t> streams_;
    std::vector<SmallRead> reads_;
};

}  // namespace penstock::python
