// See run_reads.hpp.
#include "data/rows/run_reads.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "data/cores/on_cores.hpp"
#include "os/disk_waits.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kStagedPortion = 512;         // reads of one call: nothing hides its last copy to a GPU
constexpr std::uint64_t kLooked = 1 * kMiB;         // bytes of one call
constexpr std::uint64_t kGap = 2 * kKiB;            // between two runs: to read it takes no longer than a call
constexpr std::uint64_t kTogether = 16 * kKiB;      // of one call for several runs
constexpr std::uint64_t kScratch = 128 * kKiB;      // of one thread
// A run takes as long as this many bytes more would. All work is counted in such bytes.
constexpr std::uint64_t kRunCost = 4 * kKiB;
// The calling thread does as much by itself, so all of a box of kMostHere.
constexpr std::uint64_t kAloneMost = kMostHere + kMostHere / kSmallReadBytes * kRunCost;
constexpr std::uint64_t kPart = 1536 * kKiB;        // that one thread reads before it takes the next part
constexpr std::uint64_t kWorkOfThread = 2 * kMiB;   // 0.3 ms of reading; a thread takes 0.1 ms to begin
constexpr std::size_t kLastParts = 8;               // are cut in quarters: threads end within a shorter time
constexpr std::size_t kManyParts = 4 * kLastParts;  // of fewer none is cut: each is a call, and a copy to a GPU

struct Copy {
    std::uint64_t from = 0, to = 0, bytes = 0;  // from scratch to a place in memory
};

// Reads of runs: straight to their place, or several runs by one read through scratch.
class RunReads {
  public:
    RunReads(const ReadRanges& read, const MemoryView& memory)
        : read_(read), memory_(memory), is_staged_(fills_in_order(memory)) {
        if (is_staged_) portion_ = kStagedPortion;
    }

    bool read(std::span<const FileRun> runs, RunsMoved& done) {
        os::DiskWaits waits;
        while (!runs.empty()) {
            waited_ = 0;
            runs = runs.subspan(gather(runs, done));
            if (!make(memory_, direct_, done)) return false;
            if (!shared_.empty() && !make({scratch_.get(), kScratch, MemoryKind::system}, shared_, done)) return false;
            for (const Copy& copy : copies_) {
                std::memcpy(place(copy.to), scratch_.get() + copy.from, copy.bytes);
            }
            const std::size_t reads = direct_.size() + shared_.size();
            // Staged reads are judged by their lane: copies wait too.
            if (!is_staged_ && waits.many(reads, waited_)) return false;
        }
        return true;
    }

  private:
    std::byte* place(std::uint64_t offset) const { return static_cast<std::byte*>(memory_.data) + offset; }

    // How many of the runs one call serves.
    std::size_t neighbours(std::span<const FileRun> runs) const {
        std::size_t count = 1;
        if (is_staged_) return count;
        const std::uint64_t begin = runs[0].file_offset;
        for (std::uint64_t end = begin + runs[0].bytes; count < runs.size(); ++count) {
            const FileRun& next = runs[count];
            if (runs[count - 1].bytes > kShortRun || next.bytes > kShortRun || next.file_offset < end) break;
            if (next.file_offset - end > kGap || next.file_offset + next.bytes - begin > kTogether) break;
            end = next.file_offset + next.bytes;
        }
        return count;
    }

    // The reads of the next portion. Returns how many runs they serve.
    std::size_t gather(std::span<const FileRun> runs, RunsMoved& done) {
        direct_.clear();
        shared_.clear();
        copies_.clear();
        std::uint64_t used = 0, straight = 0;
        std::size_t taken = 0;
        const auto is_room = [&] {
            return direct_.size() + shared_.size() < portion_ && used + kTogether <= kScratch && straight < kLooked;
        };
        while (taken < runs.size() && is_room()) {
            const std::span<const FileRun> some = runs.subspan(taken, neighbours(runs.subspan(taken)));
            const FileRun& first = some.front();
            taken += some.size();
            if (some.size() == 1) {
                direct_.push_back({nullptr, first.file_offset, place(first.memory_offset), first.bytes});
                straight += first.bytes;
                continue;
            }
            if (!scratch_) scratch_ = std::make_unique_for_overwrite<std::byte[]>(kScratch);
            const std::uint64_t bytes = some.back().file_offset + some.back().bytes - first.file_offset;
            shared_.push_back({nullptr, first.file_offset, scratch_.get() + used, bytes});
            for (const FileRun& one : some) {
                copies_.push_back({used + one.file_offset - first.file_offset, one.memory_offset, one.bytes});
            }
            used += bytes;
        }
        done.staged_bytes += used;
        done.scratch_peak_bytes = std::max(done.scratch_peak_bytes, used);
        return taken;
    }

    bool make(const MemoryView& memory, std::span<const Range> ranges, RunsMoved& done) {
        if (ranges.empty()) return true;
        const auto made = read_(memory, ranges);
        if (!made) return false;
        done.operations += made->operations;
        done.bytes += made->bytes;
        done.waits += made->waits;
        waited_ += made->waits;
        done.host_copies_bytes += is_staged_ ? made->bytes : 0;
        done.seconds += made->seconds;
        for (const SmallRead& sample : made->samples) {
            if (done.samples.size() < RunsMoved::kMostSamples) done.samples.try_emplace(sample.memory.bytes, sample);
        }
        return true;
    }

    const ReadRanges& read_;
    MemoryView memory_;
    bool is_staged_;  // its bytes go through pinned memory
    long waited_ = 0;  // in the reads of this portion
    std::size_t portion_ = os::DiskWaits::kReads;  // reads of one call
    std::vector<Range> direct_, shared_;
    std::vector<Copy> copies_;  // from scratch to their place
    std::unique_ptr<std::byte[]> scratch_;
};

// No run is longer than a small read.
std::vector<FileRun> pieces_of(std::span<const FileRun> runs) {
    std::vector<FileRun> pieces;
    pieces.reserve(runs.size());
    for (const FileRun& run : runs) {
        for (std::uint64_t at = 0; at < run.bytes; at += kSmallReadBytes) {
            pieces.push_back({run.file_offset + at, run.memory_offset + at, std::min(kSmallReadBytes, run.bytes - at)});
        }
    }
    return pieces;
}

std::uint64_t work_of(std::span<const FileRun> runs) {
    std::uint64_t work = 0;
    for (const FileRun& run : runs) work += kRunCost + run.bytes;
    return work;
}

// The same parts whatever the number of threads, so that counts do not depend on it.
std::vector<std::span<const FileRun>> parts_of(std::span<const FileRun> runs) {
    std::vector<std::span<const FileRun>> parts;
    while (!runs.empty()) {
        std::size_t count = 0;
        for (std::uint64_t work = 0; count < runs.size() && work < kPart; ++count) work += kRunCost + runs[count].bytes;
        parts.push_back(runs.first(count));
        runs = runs.subspan(count);
    }
    return parts;
}

// Where parts of `each` places begin, and the end.
std::vector<std::size_t> starts_of(std::size_t places, std::size_t each) {
    const std::size_t quarter = std::max<std::size_t>(1, each / 4);
    const std::size_t cut = places / each >= kManyParts ? kLastParts * each : 0;  // places that short parts have
    std::vector<std::size_t> starts{0};
    while (starts.back() != places) {
        const std::size_t left = places - starts.back();
        starts.push_back(starts.back() + std::min(left, left > cut ? each : quarter));
    }
    return starts;
}

class PartReader final : public ItemWorker {
  public:
    PartReader(const ReadRanges& read, const MemoryView& memory, std::span<const std::span<const FileRun>> parts,
               std::span<RunsMoved> done)
        : reads_(read, memory), parts_(parts), done_(done) {}

    std::string take(std::size_t item) override {
        return reads_.read(parts_[item], done_[item]) ? std::string() : "a transfer has to read it";
    }

  private:
    RunReads reads_;
    std::span<const std::span<const FileRun>> parts_;
    std::span<RunsMoved> done_;  // each is of one part, so of one thread
};

void add_all(std::span<const RunsMoved> parts, Clock::time_point began, RunsMoved& sum) {
    for (const RunsMoved& part : parts) add_reads(part, sum);
    sum.seconds = seconds_since(began);
}

CoreOptions cores_of(const RunsInto& into) {
    return {.threads = into.threads, .crew = into.crew};
}

bool read_on_cores(const ReadRanges& read, std::span<const FileRun> runs, const RunsInto& into) {
    const Clock::time_point began = Clock::now();
    const std::vector<std::span<const FileRun>> parts = parts_of(runs);
    std::vector<RunsMoved> done(parts.size());
    const auto make = [&] { return std::make_unique<PartReader>(read, into.memory, parts, done); };
    const CoreResult result = on_cores({parts.size(), kPart, kWorkOfThread}, make, cores_of(into));
    if (result.done != parts.size()) return false;
    add_all(done, began, into.done);
    return true;
}

// Finds rows, and reads them.
class RowReads {
  public:
    RowReads(const ReadRanges& read, const Layout& layout, const RunsInto& into)
        : read_(read), layout_(layout), memory_(into.memory),
          limits_{kSmallReadBytes, kRunsOfRow, fills_in_order(into.memory)} {}

    bool read(const WantedRows& rows, RunsMoved& done, unsigned threads) {
        found_.runs.clear();
        found_.copies.clear();
        if (!find_rows(layout_, rows, limits_, found_)) return false;
        if (!read_runs(read_, found_.runs, {memory_, done, threads})) return false;
        auto* const data = static_cast<std::byte*>(memory_.data);
        for (const RowCopy& copy : found_.copies) std::memcpy(data + copy.to, data + copy.from, copy.bytes);
        return true;
    }

    const RowLimits& limits() const noexcept { return limits_; }

  private:
    const ReadRanges& read_;
    const Layout& layout_;
    const MemoryView memory_;
    const RowLimits limits_;
    RowRuns found_;
};

// As PartReader, of parts of the places.
class PartOfRows final : public ItemWorker {
  public:
    PartOfRows(const RowReads& reads, const WantedRows& rows, std::span<const std::size_t> starts,
               std::span<RunsMoved> done)
        : reads_(reads), rows_(rows), starts_(starts), done_(done) {}

    std::string take(std::size_t item) override {
        WantedRows some = rows_;
        some.places = rows_.places.subspan(starts_[item], starts_[item + 1] - starts_[item]);
        return reads_.read(some, done_[item], 1) ? std::string() : "a transfer has to read it";
    }

  private:
    RowReads reads_;
    const WantedRows& rows_;
    std::span<const std::size_t> starts_;  // of the items among the places, and the end
    std::span<RunsMoved> done_;  // each is of one item, so of one thread
};

}  // namespace

void add_reads(const RunsMoved& part, RunsMoved& sum) {
    sum.operations += part.operations;
    sum.bytes += part.bytes;
    sum.waits += part.waits;
    sum.host_copies_bytes += part.host_copies_bytes;
    sum.staged_bytes += part.staged_bytes;
    sum.scratch_peak_bytes = std::max(sum.scratch_peak_bytes, part.scratch_peak_bytes);
    for (const auto& [size, sample] : part.samples) {
        if (sum.samples.size() < RunsMoved::kMostSamples) sum.samples.try_emplace(size, sample);
    }
}

bool fills_in_order(const MemoryView& memory) noexcept {
    return memory.kind != MemoryKind::system && memory.kind != MemoryKind::pinned;
}

bool read_runs(const File& file, std::span<const FileRun> runs, const RunsInto& into) {
    return read_runs([&](const MemoryView& memory, std::span<const Range> ranges) {
        return file.try_small_reads(memory, ranges);
    }, runs, into);
}

bool read_runs(const ReadRanges& read, std::span<const FileRun> runs, const RunsInto& into) {
    const auto is_long = [](const FileRun& run) { return run.bytes > kSmallReadBytes; };
    std::vector<FileRun> pieces;
    if (std::any_of(runs.begin(), runs.end(), is_long)) runs = pieces = pieces_of(runs);
    into.done.requested_bytes = into.memory.bytes;
    if (work_of(runs) > kAloneMost) return read_on_cores(read, runs, into);
    return RunReads(read, into.memory).read(runs, into.done);
}

bool read_box(const std::pair<ReadRanges, ReadRanges>& read_and_cached, std::span<const FileRun> runs,
              const RunsInto& into) {
    const auto& [read, cached] = read_and_cached;
    if (into.memory.bytes > kMostCached) return false;
    if (into.memory.bytes <= kMostHere || runs.empty()) return read_runs(read, runs, into);
    FileRun end = runs.back();
    const std::uint64_t before = end.bytes - std::min(end.bytes, kSmallReadBytes);
    end = {end.file_offset + before, end.memory_offset + before, end.bytes - before};
    RunsMoved uncounted;
    if (!RunReads(cached, into.memory).read({&end, 1}, uncounted)) return false;
    return read_runs(cached, runs, into);
}

bool read_box(const File& file, std::span<const FileRun> runs, const RunsInto& into) {
    const auto read = [&](const MemoryView& memory, std::span<const Range> ranges) {
        return file.try_small_reads(memory, ranges);
    };
    const auto cached = [&](const MemoryView& memory, std::span<const Range> ranges) {
        return file.try_cached_reads(memory, ranges);
    };
    return read_box({read, cached}, runs, into);
}

bool read_rows(const ReadRanges& read, const Layout& layout, const WantedRows& rows, const RunsInto& into) {
    const Clock::time_point began = Clock::now();
    const std::uint64_t work_of_row = into.memory.bytes / rows.numbers.size() + kRunCost;
    RowReads reads(read, layout, into);
    if (rows.numbers.size() * work_of_row <= kAloneMost) return reads.read(rows, into.done, into.threads);
    const std::vector<std::size_t> places = places_in_order(rows.numbers, reads.limits().as_in_memory);
    WantedRows ordered = rows;
    ordered.places = places;
    const auto starts = starts_of(places.size(), std::max<std::uint64_t>(1, kPart / work_of_row));
    std::vector<RunsMoved> done(starts.size() - 1);
    const auto make = [&] { return std::make_unique<PartOfRows>(reads, ordered, starts, done); };
    const std::uint64_t work_of_part = places.size() * work_of_row / done.size();
    const CoreResult result = on_cores({done.size(), work_of_part, kWorkOfThread}, make, cores_of(into));
    if (result.done != done.size()) return false;
    into.done.requested_bytes = into.memory.bytes;
    add_all(done, began, into.done);
    return true;
}

}  // namespace penstock::data
