// See named_file.hpp.
#include "context/transfer/small/named_file.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <utility>

#include "context/state.hpp"
#include "context/transfer/small/small_read.hpp"
#include "os/file/file_stat.hpp"

namespace penstock::context {
namespace {

class CountedRead {
  public:
    explicit CountedRead(std::atomic<int>& running) : running_(running) { ++running_; }
    ~CountedRead() { --running_; }
    CountedRead(const CountedRead&) = delete;
    CountedRead& operator=(const CountedRead&) = delete;

  private:
    std::atomic<int>& running_;
};

bool holds(const Memory& memory, const MemoryView& part) {
    const auto before = static_cast<std::uint64_t>(static_cast<const std::byte*>(part.data) -
                                                   static_cast<const std::byte*>(memory.view().data));
    return part.bytes <= memory.view().bytes - before;
}

// A small read that lies in the memory.
bool is_small(const MemoryView& memory, const Range& range) {
    const auto before = reinterpret_cast<std::uintptr_t>(range.memory) - reinterpret_cast<std::uintptr_t>(memory.data);
    if (before > memory.bytes || range.bytes > memory.bytes - before) return false;
    return range.bytes != 0 && range.bytes <= kSmallReadBytes && range.offset_bytes <= kLastOffset - range.bytes;
}

}  // namespace

std::optional<NamedFile> NamedFile::open(const Context& context, const std::string& name) {
    ContextState& state = ContextState::of(context);
    state.check_process();
    const ContextOptions& options = state.options;
    if (options.workers != 0) return std::nullopt;
    if (options.path != PathKind::automatic && options.path != PathKind::buffered) return std::nullopt;
    NamedFile file(context, name);
    // A pipe of this name does not block.
    file.fd_ = os::UniqueFd(state.system.open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0), state.system);
    if (!file.fd_ || ::fstat(file.fd_.get(), &file.status_) != 0 || !S_ISREG(file.status_.st_mode)) return std::nullopt;
    const bool may_be_text_of_kernel = major(file.status_.st_dev) == 0;  // as all file systems without a disk
    if (may_be_text_of_kernel && os::stat_without_mount(file.fd_.get(), name).is_made_by_kernel) return std::nullopt;
    if (state.profiles.place_of(file.fd_.get(), name)) return std::nullopt;
    return file;
}

std::shared_ptr<const SmallPlan> NamedFile::plan_of(const MemoryView& memory, std::uint64_t offset_bytes,
                                                    FirstTouch touch) const {
    ContextState& state = ContextState::of(context_);
    if (const auto known = state.small_plans.known(memory.kind, memory.bytes, touch)) return *known;
    // The first one of this size asks a File, for all that come after it.
    static_cast<void>(context_.open(name_).try_small_read(memory, offset_bytes));
    return state.small_plans.known(memory.kind, memory.bytes, touch).value_or(nullptr);
}

bool NamedFile::moved(const MemoryView& memory, std::uint64_t offset_bytes) const {
    ContextState& state = ContextState::of(context_);
    if (memory.kind == MemoryKind::pinned || memory.kind == MemoryKind::system) {
        const ssize_t got = state.system.pread(fd_.get(), memory.data, memory.bytes, offset_bytes);
        return got == static_cast<ssize_t>(memory.bytes);
    }
    return state.engine.read_small(fd_.get(), offset_bytes, {static_cast<std::byte*>(memory.data), memory.bytes}, {});
}

std::optional<SmallRead> NamedFile::read(MemoryView memory, std::uint64_t offset_bytes) const {
    const Clock::time_point started = Clock::now();
    if (memory.bytes == 0 || memory.bytes > kSmallReadBytes || memory.data == nullptr) return std::nullopt;
    if (offset_bytes > kLastOffset - memory.bytes) return std::nullopt;
    ContextState& state = ContextState::of(context_);
    const std::shared_ptr<Memory> ours = state.memory_at(memory.data);  // kept until the bytes are there
    if (ours && !holds(*ours, memory)) return std::nullopt;
    const FirstTouch touch = ours ? ours->first_touch() : FirstTouch::none;
    std::shared_ptr<const SmallPlan> plan = plan_of(memory, offset_bytes, touch);
    if (!plan) return std::nullopt;
    const CountedRead under_way(*state.running);
    if (!moved(memory, offset_bytes)) return std::nullopt;
    const double seconds = seconds_since(started);
    return SmallRead{memory, offset_bytes, seconds, state.engine.pinned_peak_bytes(), std::move(plan)};
}

std::optional<SmallReads> NamedFile::read_many(const MemoryView& memory, std::span<const Range> ranges,
                                               bool cached_only) const {
    const Clock::time_point started = Clock::now();
    if (memory.kind != MemoryKind::system && memory.kind != MemoryKind::pinned) return std::nullopt;
    ContextState& state = ContextState::of(context_);
    const std::shared_ptr<Memory> ours = state.memory_at(memory.data);  // kept until the bytes are there
    if (ours && !holds(*ours, memory)) return std::nullopt;
    const FirstTouch touch = ours ? ours->first_touch() : FirstTouch::none;
    const CountedRead under_way(*state.running);
    SmallReads made;
    const long waits = state.system.waits_of_thread();
    for (std::span<const Range> left = ranges; !left.empty();) {
        const std::span<const Range> some = left.first(continued(left));
        std::uint64_t bytes = 0;
        for (const Range& range : some) {
            if (!is_small(memory, range) || !sample(range, {memory.kind, touch}, made)) return std::nullopt;
            bytes += range.bytes;
        }
        const auto& [file, offset_bytes, place, first_bytes] = some.front();
        const ssize_t got = cached_only ? state.system.pread_cached(fd_.get(), place, bytes, offset_bytes)
                                        : state.system.pread(fd_.get(), place, bytes, offset_bytes);
        if (got != static_cast<ssize_t>(bytes)) return std::nullopt;
        made.bytes += bytes;
        ++made.operations;
        left = left.subspan(some.size());
    }
    made.waits += state.system.waits_of_thread() - waits;
    made.seconds = seconds_since(started);
    for (SmallRead& one : made.samples) {
        one.seconds = made.seconds / static_cast<double>(ranges.size());
        one.pinned_peak_bytes = state.engine.pinned_peak_bytes();
    }
    return made;
}

bool NamedFile::sample(const Range& range, std::pair<MemoryKind, FirstTouch> kind, SmallReads& made) const {
    for (const SmallRead& one : made.samples) {
        if (one.memory.bytes == range.bytes) return true;
    }
    const MemoryView memory{range.memory, range.bytes, kind.first};
    os::System& system = ContextState::of(context_).system;
    const long waits = system.waits_of_thread();
    std::shared_ptr<const SmallPlan> plan = plan_of(memory, range.offset_bytes, kind.second);
    made.waits -= system.waits_of_thread() - waits;  // for a lock, or for what the plan asks
    if (!plan) return false;
    made.samples.push_back({memory, range.offset_bytes, 0, 0, std::move(plan)});
    return true;
}

}  // namespace penstock::context
