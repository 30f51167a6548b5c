// See small_read.hpp.
#include "context/transfer/small/small_read.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "context/files/extent.hpp"
#include "context/transfer/prepare.hpp"
#include "context/transfer/submission.hpp"
#include "os/file/residency.hpp"

namespace penstock::context {
namespace {

static_assert(kSmallReadBytes == policy::kInlineBytes);
// That one call reads of ranges which continue each other: 4 MiB by 64 calls take a tenth longer than by 4.
constexpr std::uint64_t kTogetherBytes = 1 * kMiB;

// A transfer of its own: close() waits for it, and others see that the context is busy.
class UnderWay {
  public:
    UnderWay(ContextState& context, OpenFile& file) : running_(*context.running), file_(file) {
        file_.transfer_began();
        ++running_;
    }
    ~UnderWay() {
        --running_;
        file_.transfer_ended({}, nullptr);
    }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

  private:
    std::atomic<int>& running_;
    OpenFile& file_;
};

bool planned_inline(const Plan& plan) {
    return plan.steps.size() == 1 && plan.steps.front().shape.run_inline &&
           plan.steps.front().shape.path == PathKind::buffered &&
           plan.steps.front().fallback_from == PathKind::automatic;
}

// What all small reads, or writes, of a kind have in common: 6 bits of facts, and those of bytes above them. Without a
// profile, the policy looks at nothing else (see goes_inline in policy.cpp).
constexpr std::uint64_t kOfWrites = std::uint64_t{1} << 63;

std::uint64_t plain_key(MemoryKind kind, std::uint64_t bytes, FirstTouch touch) {
    return bytes << 7 | static_cast<std::uint64_t>(kind) << 4 | static_cast<std::uint64_t>(touch) << 2;
}

// Where a profile is asked: with the facts of the file, and its file system above all.
std::uint64_t key_of(const Submission& submission, const Extent& extent, FirstTouch touch) {
    const std::uint64_t of_writes = submission.reading() ? 0 : kOfWrites;
    const std::uint64_t plain = plain_key(submission.kind, extent.bytes, touch) | of_writes;
    if (!extent.file->place) return plain;
    const auto place = reinterpret_cast<std::uintptr_t>(extent.file->place.get());
    return place << 24 ^ (plain | static_cast<std::uint64_t>(extent.file->direct().usable) << 1 |
                          static_cast<std::uint64_t>(extent.file->memory_backed()));
}

bool is_larger(const Extent& extent) { return extent.bytes > kSmallReadBytes; }

// The mapping of a file in memory may be registered with the device: then there is a better way.
std::uint64_t most_bytes(const Submission& submission, const OpenFile& file) {
    if (submission.to_host()) return submission.context.machine().caller_cached_bytes;
    if (submission.kind != MemoryKind::device || file.memory_backed()) return 0;
    return submission.context.machine().caller_staged_bytes;
}

bool may_be_larger(const Submission& submission, const Extent& extent) {
    return submission.path() == PathKind::automatic && !extent.file->place && extent.file->answers_here() &&
           extent.bytes <= most_bytes(submission, *extent.file);
}

bool may_be_small(const Submission& submission, const Extent& extent, bool or_larger = false) {
    const ContextOptions& options = submission.context.options;
    if (extent.bytes == 0 || extent.memory == nullptr) return false;
    if (extent.offset_bytes > kLastOffset - extent.bytes || options.workers != 0) return false;
    if (is_larger(extent)) return or_larger && may_be_larger(submission, extent);
    if (submission.path() != PathKind::automatic && submission.path() != PathKind::buffered) return false;
    // From this size on, the policy asks the page cache first, if it has a profile.
    return !extent.file->place || (extent.bytes < policy::kAskedMin && !options.adaptive);
}

// Whether writes of the file may go to the page cache without a plan of their own.
bool stays_in_cache(const Submission& submission, const OpenFile& file) {
    return submission.to_host() && submission.path() == PathKind::automatic && !file.place && file.answers_here() &&
           !submission.options.durable && submission.context.options.workers == 0;
}

// The memory is as its caller says, unless it leaves a buffer of the context: then a transfer refuses it.
bool inside(const Memory& memory, const Extent& extent) {
    const auto before = static_cast<std::uint64_t>(static_cast<const std::byte*>(extent.memory) -
                                                   static_cast<const std::byte*>(memory.view().data));
    return extent.bytes <= memory.view().bytes - before;
}

bool pread_all(const Submission& submission, const Extent& extent, int fd) {
    const ssize_t got = submission.context.system.pread(fd, extent.memory, extent.bytes, extent.offset_bytes);
    return got == static_cast<ssize_t>(extent.bytes);
}

bool moved(const Submission& submission, const Extent& extent, std::optional<std::uintptr_t> after) {
    if (!submission.to_host()) {
        const int fd = extent.file->handle().buffered_fd;
        auto* memory = static_cast<std::byte*>(extent.memory);
        return submission.context.engine.read_small(fd, extent.offset_bytes, {memory, extent.bytes}, after);
    }
    return pread_all(submission, extent, extent.file->handle().buffered_fd);
}

// Whether all came to memory of the host without a wait for storage. Where the file system does not say whether a read
// would wait, the page cache is asked before.
bool moved_from_cache(const Submission& submission, const Extent& extent, int fd) {
    const OpenFile& file = *extent.file;
    if (file.memory_backed()) return pread_all(submission, extent, fd);
    const ssize_t got = submission.context.system.pread_cached(fd, extent.memory, extent.bytes, extent.offset_bytes);
    if (got >= 0 || errno != EOPNOTSUPP) return std::cmp_equal(got, extent.bytes);
    if (!file.answers_here()) return false;
    return os::cached_fraction(fd, extent.offset_bytes, extent.bytes) == 1.0 && pread_all(submission, extent, fd);
}

// The same for each kind of memory. Returns how many operations brought all; 0: not all came.
std::uint64_t larger_moved(const Submission& submission, const Extent& extent) {
    const int fd = extent.file->handle().buffered_fd;
    if (submission.to_host()) return moved_from_cache(submission, extent, fd) ? 1 : 0;
    std::uint64_t parts = 0;
    const auto read_part = [&](std::span<std::byte> half, std::uint64_t from) {
        ++parts;
        const Extent part{extent.file, extent.offset_bytes + from, half.data(), half.size()};
        return moved_from_cache(submission, part, fd);
    };
    const std::span<std::byte> memory(static_cast<std::byte*>(extent.memory), extent.bytes);
    return submission.context.engine.read_by_halves(memory, read_part) ? parts : 0;
}

}  // namespace

std::shared_ptr<const SmallPlan> SmallPlans::of(const Submission& submission, const Extent& extent,
                                                FirstTouch touch) {
    const std::uint64_t key = key_of(submission, extent, touch);
    {
        const std::lock_guard lock(mutex_);
        const auto found = known_.find(key);
        if (found != known_.end()) return found->second;
    }
    const Plan plan = preview(submission, {extent}).plan;
    std::shared_ptr<const SmallPlan> made;
    if (planned_inline(plan)) {
        made = std::make_shared<const SmallPlan>(SmallPlan{plan.describe(), plan.reason(), plan.predicted_seconds()});
    }
    if (!made && is_larger(extent)) return nullptr;  // the page cache may have the bytes another time
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kMostPlans) known_.clear();
    return known_.try_emplace(key, std::move(made)).first->second;
}

std::optional<std::shared_ptr<const SmallPlan>> SmallPlans::known(MemoryKind kind, std::uint64_t bytes,
                                                                  FirstTouch touch) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(plain_key(kind, bytes, touch));
    if (found == known_.end()) return std::nullopt;
    return found->second;
}

std::optional<SmallRead> small_read(const Submission& submission, const Extent& extent,
                                    std::optional<std::uintptr_t> after) {
    ContextState& context = submission.context;
    context.check_process();
    if (!may_be_small(submission, extent, true)) return std::nullopt;
    const std::shared_ptr<Memory> ours = context.memory_at(extent.memory);  // kept until the bytes are there
    if (ours && !inside(*ours, extent)) return std::nullopt;
    const FirstTouch touch = ours ? ours->first_touch() : FirstTouch::none;
    const UnderWay under_way(context, *extent.file);
    if (after && (submission.to_host() || is_larger(extent))) context.device->synchronize_native(*after);
    // What is not in the page cache is found out by the read itself, in a microsecond. A plan takes twenty.
    const std::uint64_t larger = is_larger(extent) ? larger_moved(submission, extent) : 0;
    if (is_larger(extent) && larger == 0) return std::nullopt;
    std::shared_ptr<const SmallPlan> plan = context.small_plans.of(submission, extent, touch);
    if (!plan) return std::nullopt;
    if (!is_larger(extent) && !moved(submission, extent, after)) return std::nullopt;
    extent.file->bytes_read += extent.bytes;
    const double seconds = seconds_since(submission.started);
    return SmallRead{{extent.memory, extent.bytes, submission.kind}, extent.offset_bytes, seconds,
                     context.engine.pinned_peak_bytes(), std::move(plan), std::max<std::uint64_t>(larger, 1)};
}

std::optional<SmallWrite> small_write(const Submission& submission, const Extent& extent) {
    ContextState& context = submission.context;
    context.check_process();
    if (!stays_in_cache(submission, *extent.file) || extent.bytes == 0 || extent.memory == nullptr) return {};
    if (extent.bytes > context.machine().caller_cached_bytes || extent.offset_bytes > kLastOffset - extent.bytes) {
        return std::nullopt;
    }
    const std::shared_ptr<Memory> ours = context.memory_at(extent.memory);  // kept until the bytes are there
    if (ours && !inside(*ours, extent)) return std::nullopt;
    const UnderWay under_way(context, *extent.file);
    std::shared_ptr<const SmallPlan> plan =
        context.small_plans.of(submission, extent, ours ? ours->first_touch() : FirstTouch::none);
    if (!plan) return std::nullopt;
    const int fd = extent.file->handle().buffered_fd;
    const ssize_t put = context.system.pwrite(fd, extent.memory, extent.bytes, extent.offset_bytes);
    if (!std::cmp_equal(put, extent.bytes)) return std::nullopt;
    extent.file->write_ended({}, {&extent, 1});
    const double seconds = seconds_since(submission.started);
    return SmallWrite{{extent.memory, extent.bytes, submission.kind}, extent.offset_bytes, seconds,
                      context.engine.pinned_peak_bytes(), std::move(plan)};
}

namespace {

bool holds(const MemoryView& memory, const Range& range) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data);
    const auto at = reinterpret_cast<std::uintptr_t>(range.memory);
    return at >= begin && at - begin <= memory.bytes && range.bytes <= memory.bytes - (at - begin);
}

// The sample of this size in `made`, which its first read becomes. Null: such a read is to be a transfer.
const SmallRead* sample_of(const Submission& submission, const Extent& extent, FirstTouch touch, SmallReads& made) {
    for (const SmallRead& sample : made.samples) {
        if (sample.memory.bytes == extent.bytes) return &sample;
    }
    os::System& system = submission.context.system;
    const long waits = system.waits_of_thread();
    std::shared_ptr<const SmallPlan> plan = submission.context.small_plans.of(submission, extent, touch);
    made.waits -= system.waits_of_thread() - waits;  // for a lock, or for what the plan asks
    if (!plan) return nullptr;
    const MemoryView memory{extent.memory, extent.bytes, submission.kind};
    made.samples.push_back({memory, extent.offset_bytes, 0, 0, std::move(plan)});
    return &made.samples.back();
}

bool moved_many(const Submission& submission, const FileHandle& file, std::span<const Range> ranges) {
    std::vector<engine::RequestRange> all;
    all.reserve(ranges.size());
    for (const Range& range : ranges) {
        all.push_back({&file, range.offset_bytes, static_cast<std::byte*>(range.memory), range.bytes});
    }
    return submission.context.engine.read_many(all);
}

// Ranges of `extent`, which the host gets by one call.
struct ByDescriptor {
    int fd;
    std::span<const Range> ranges;
    bool cached_only;
};

bool moved_by(const Submission& submission, const Extent& extent, const ByDescriptor& how) {
    if (submission.to_host()) {
        return how.cached_only ? moved_from_cache(submission, extent, how.fd) : pread_all(submission, extent, how.fd);
    }
    FileHandle handle = extent.file->handle();
    handle.buffered_fd = how.fd;
    return moved_many(submission, handle, how.ranges);
}

// Whether each of the ranges is a small read of the file of `extent`, which becomes all of them. `made` gets their
// samples. Nothing that threads share is written for a range: that would take longer than a read of it.
bool planned(const Submission& submission, std::span<const Range> ranges, SmallReads& made,
             std::pair<Extent*, FirstTouch> place) {
    const auto& [extent, touch] = place;
    const MemoryView memory{extent->memory, extent->bytes, submission.kind};
    std::uint64_t bytes = 0;
    for (const Range& range : ranges) {
        extent->offset_bytes = range.offset_bytes;
        extent->memory = range.memory;
        extent->bytes = range.bytes;
        if (!holds(memory, range) || !may_be_small(submission, *extent)) return false;
        if (sample_of(submission, *extent, touch, made) == nullptr) return false;
        bytes += range.bytes;
    }
    extent->offset_bytes = ranges.front().offset_bytes;
    extent->memory = ranges.front().memory;
    extent->bytes = bytes;
    return true;
}

}  // namespace

std::size_t continued(std::span<const Range> ranges) {
    std::size_t count = 1;
    for (std::uint64_t bytes = ranges[0].bytes; count < ranges.size(); ++count) {
        const Range &last = ranges[count - 1], &next = ranges[count];
        if (next.offset_bytes != last.offset_bytes + last.bytes) break;
        if (next.memory != static_cast<std::byte*>(last.memory) + last.bytes) break;
        bytes += next.bytes;
        if (bytes > kTogetherBytes) break;
    }
    return count;
}

std::optional<SmallReads> small_reads(const Submission& submission, const std::shared_ptr<OpenFile>& file,
                                      const SmallPieces& pieces) {
    const auto& [memory, ranges, cached_only] = pieces;
    ContextState& context = submission.context;
    context.check_process();
    const bool to_host = submission.to_host();
    if (cached_only && !to_host) return std::nullopt;
    const std::shared_ptr<Memory> ours = context.memory_at(memory.data);  // kept until the bytes are there
    Extent extent{file, 0, memory.data, memory.bytes};
    if (ours && !inside(*ours, extent)) return std::nullopt;
    const FirstTouch touch = ours ? ours->first_touch() : FirstTouch::none;
    const UnderWay under_way(context, *file);
    const ReadDescriptors::Lent descriptor(file->readers());
    SmallReads made;
    const long waits = context.system.waits_of_thread();
    for (std::span<const Range> left = ranges; !left.empty();) {
        const std::span<const Range> some = to_host ? left.first(continued(left)) : left;
        extent.memory = memory.data;
        extent.bytes = memory.bytes;
        if (!planned(submission, some, made, {&extent, touch})) return std::nullopt;
        if (!moved_by(submission, extent, {descriptor.fd(), some, cached_only})) return std::nullopt;
        made.bytes += extent.bytes;
        made.operations += to_host ? 1 : some.size();
        left = left.subspan(some.size());
    }
    made.waits = to_host ? made.waits + context.system.waits_of_thread() - waits : 0;
    file->bytes_read += made.bytes;
    made.seconds = seconds_since(submission.started);
    for (SmallRead& sample : made.samples) {
        sample.seconds = made.seconds / static_cast<double>(ranges.size());
        sample.pinned_peak_bytes = context.engine.pinned_peak_bytes();
    }
    return made;
}

std::optional<SmallWrites> small_writes(const Submission& submission, const std::shared_ptr<OpenFile>& file,
                                        const SmallPieces& pieces) {
    const MemoryView& memory = pieces.memory;
    ContextState& context = submission.context;
    context.check_process();
    if (!stays_in_cache(submission, *file)) return std::nullopt;
    const std::shared_ptr<Memory> ours = context.memory_at(memory.data);  // kept until the bytes are there
    Extent extent{file, 0, memory.data, memory.bytes};
    if (ours && !inside(*ours, extent)) return std::nullopt;
    const FirstTouch touch = ours ? ours->first_touch() : FirstTouch::none;
    const UnderWay under_way(context, *file);
    const int fd = file->handle().buffered_fd;
    SmallWrites made;
    const long waits = context.system.waits_of_thread();
    for (std::span<const Range> left = pieces.ranges; !left.empty();) {
        const std::span<const Range> some = left.first(continued(left));
        extent.memory = memory.data;
        extent.bytes = memory.bytes;
        if (!planned(submission, some, made, {&extent, touch})) return std::nullopt;
        const ssize_t put = context.system.pwrite(fd, extent.memory, extent.bytes, extent.offset_bytes);
        if (!std::cmp_equal(put, extent.bytes)) return std::nullopt;
        file->write_ended({}, {&extent, 1});
        made.bytes += extent.bytes;
        ++made.operations;
        left = left.subspan(some.size());
    }
    made.waits += context.system.waits_of_thread() - waits;
    made.seconds = seconds_since(submission.started);
    for (SmallWrite& sample : made.samples) sample.seconds = made.seconds / static_cast<double>(pieces.ranges.size());
    return made;
}

}  // namespace penstock::context

namespace penstock {

Evidence SmallRead::evidence() const {
    const bool to_host = memory.kind == MemoryKind::pinned || memory.kind == MemoryKind::system;
    Evidence evidence;
    evidence.paths.push_back({PathKind::buffered, memory.bytes, operations, to_host ? 0 : memory.bytes, false, false});
    evidence.pinned_peak_bytes = pinned_peak_bytes;
    evidence.plan = plan->plan;
    evidence.why = plan->why;
    evidence.predicted_seconds = plan->predicted_seconds;
    evidence.seconds = seconds;
    return evidence;
}

}  // namespace penstock
