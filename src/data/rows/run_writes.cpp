// See run_writes.hpp.
#include "data/rows/run_writes.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "os/disk_waits.hpp"

namespace penstock::data {
namespace {

constexpr std::uint64_t kGathered = 64 * kKiB;  // of one call for several short runs
constexpr std::uint64_t kGatherScratch = 128 * kKiB;
constexpr std::uint64_t kPortion = 1 * kMiB;  // bytes between two looks at the waits
constexpr std::size_t kCalls = os::DiskWaits::kReads;
static_assert(kGathered <= kSmallReadBytes);

class RunWrites {
  public:
    RunWrites(const WriteRanges& write, const MemoryView& memory) : write_(write), memory_(memory) {}

    bool write(std::span<const FileRun> runs, RunsMoved& done) {
        os::DiskWaits waits;
        while (!runs.empty()) {
            runs = runs.subspan(gather(runs, done));
            long waited = 0;
            for (const auto& [memory, ranges] : {Portion{memory_, direct_}, Portion{scratch(), gathered_}}) {
                if (ranges.empty()) continue;
                const auto made = write_(memory, ranges);
                if (!made) return false;
                add(*made, done);
                waited += made->waits;
            }
            if (waits.many(direct_.size() + gathered_.size(), waited)) return false;
        }
        return true;
    }

  private:
    struct Portion {
        MemoryView memory;
        std::span<const Range> ranges;
    };

    MemoryView scratch() const noexcept { return {scratch_.get(), kGatherScratch, MemoryKind::system}; }
    std::byte* place(const FileRun& run) const { return static_cast<std::byte*>(memory_.data) + run.memory_offset; }

    // How many of the runs, from the first on, follow each other in the file and are short.
    static std::size_t followers(std::span<const FileRun> runs) {
        std::size_t count = 1;
        std::uint64_t bytes = runs[0].bytes;
        for (; count < runs.size() && runs[count - 1].bytes <= kShortRun && runs[count].bytes <= kShortRun; ++count) {
            if (runs[count].file_offset != runs[0].file_offset + bytes || bytes + runs[count].bytes > kGathered) break;
            bytes += runs[count].bytes;
        }
        return count;
    }

    // The writes of the next portion. Returns how many runs they serve.
    std::size_t gather(std::span<const FileRun> runs, RunsMoved& done) {
        direct_.clear();
        gathered_.clear();
        std::uint64_t used = 0, straight = 0;
        std::size_t taken = 0;
        while (taken < runs.size() && direct_.size() + gathered_.size() < kCalls && straight < kPortion &&
               used + kGathered <= kGatherScratch) {
            const std::span<const FileRun> some = runs.subspan(taken, followers(runs.subspan(taken)));
            taken += some.size();
            if (some.size() == 1) {
                direct_.push_back({nullptr, some[0].file_offset, place(some[0]), some[0].bytes});
                straight += some[0].bytes;
                continue;
            }
            used += copy(some, used);
        }
        done.staged_bytes += used;
        done.scratch_peak_bytes = std::max(done.scratch_peak_bytes, used);
        return taken;
    }

    // Returns how many bytes of scratch the runs take.
    std::uint64_t copy(std::span<const FileRun> runs, std::uint64_t at) {
        if (!scratch_) scratch_ = std::make_unique_for_overwrite<std::byte[]>(kGatherScratch);
        std::uint64_t bytes = 0;
        for (const FileRun& run : runs) {
            std::memcpy(scratch_.get() + at + bytes, place(run), run.bytes);
            bytes += run.bytes;
        }
        gathered_.push_back({nullptr, runs[0].file_offset, scratch_.get() + at, bytes});
        return bytes;
    }

    static void add(const SmallWrites& made, RunsMoved& done) {
        done.operations += made.operations;
        done.bytes += made.bytes;
        done.waits += made.waits;
        done.seconds += made.seconds;
        for (const SmallWrite& sample : made.samples) {
            if (done.samples.size() < RunsMoved::kMostSamples) done.samples.try_emplace(sample.memory.bytes, sample);
        }
    }

    const WriteRanges& write_;
    MemoryView memory_;
    std::vector<Range> direct_, gathered_;  // of one portion; gathered ones lie in scratch_
    std::unique_ptr<std::byte[]> scratch_;
};

}  // namespace

bool write_rows(const WriteRanges& write, const Layout& layout, const WantedRows& rows, const RunsFrom& from) {
    RowRuns found;
    if (rows.numbers.size() > kMostRowsHere) return false;
    if (!find_rows(layout, rows, {kSmallReadBytes, kRunsOfRow, false}, found) || !found.copies.empty()) return false;
    from.done.requested_bytes = from.memory.bytes;
    return RunWrites(write, from.memory).write(found.runs, from.done);
}

}  // namespace penstock::data
