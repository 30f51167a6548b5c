// See read_chunks.hpp.
#include "data/decode/read_chunks.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace penstock::data {
namespace {

// What the threads of one call share.
struct SharedReads {
    std::mutex mutex{};
    RunsMoved reads{};  // guarded by mutex
    std::atomic<std::size_t> left{0};
    std::atomic<bool> are_many{false};  // more were left than may be
};

// Streams of one thread, each in the memory of the one before.
class StreamsOfFile final : public ChunkStreams {
  public:
    StreamsOfFile(const ChunksOfFile& from, SharedReads& shared) : from_(from), shared_(shared) {}
    ~StreamsOfFile() override {
        const std::lock_guard lock(shared_.mutex);
        const std::uint64_t others = shared_.reads.scratch_peak_bytes;  // all are there at one time
        add_reads(reads_, shared_.reads);
        keep_one(shared_.reads);
        shared_.reads.scratch_peak_bytes = others + room_;
        shared_.reads.staged_bytes += reads_.bytes;
    }

    std::optional<StoredStream> of(std::size_t item, std::string&) override {
        const StreamPlace& place = from_.places[item];
        if (room_ < place.bytes) {
            memory_ = std::make_unique_for_overwrite<std::byte[]>(place.bytes + kStreamPadding);
            std::fill_n(memory_.get() + place.bytes, kStreamPadding, std::byte{});
            room_ = place.bytes;
        }
        const FileRun run{place.offset, 0, place.bytes};
        const MemoryView memory{memory_.get(), place.bytes, MemoryKind::system};
        const ReadRanges read = [&](const MemoryView& into, std::span<const Range> ranges) {
            return from_.file.try_cached_reads(into, ranges);
        };
        const bool is_there = read_runs(read, {&run, 1}, {memory, reads_, 1});
        if (!is_there && ++shared_.left > from_.most_left) shared_.are_many = true;
        keep_one(reads_);
        if (!is_there) return std::nullopt;
        return StoredStream{{memory_.get(), place.bytes}, 0, true};
    }

  private:
    // The last pieces of streams have all sizes: a sample of each would tell nothing.
    static void keep_one(RunsMoved& reads) {
        while (reads.samples.size() > 1) reads.samples.erase(reads.samples.begin());
    }

    const ChunksOfFile& from_;
    SharedReads& shared_;
    RunsMoved reads_{};
    std::unique_ptr<std::byte[]> memory_;
    std::uint64_t room_ = 0;
};

}  // namespace

ChunksRead read_and_decode(const ChunksOfFile& from, const ChunkWork& work, const CoreOptions& options) {
    const Clock::time_point began = Clock::now();
    SharedReads shared;
    ChunksRead result;
    result.done.resize(from.places.size());
    ChunkWork by_file = work;
    by_file.make_streams = [&] { return std::make_unique<StreamsOfFile>(from, shared); };
    by_file.done = result.done;
    by_file.ended = &shared.are_many;
    result.decoded = decode_chunks(by_file, options);
    result.decoded.done = static_cast<std::size_t>(std::count(result.done.begin(), result.done.end(), 1));
    result.left = shared.left != 0;
    result.reads = std::move(shared.reads);
    result.reads.seconds = seconds_since(began);
    return result;
}

}  // namespace penstock::data
