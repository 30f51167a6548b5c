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
    return state.engine.read_small(fd_.get(), offset_bytes, {static_cast<std::byte*>(memory.data), memory.bytes});
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

}  // namespace penstock::context
