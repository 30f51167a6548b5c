// The native AIO path: libaio with O_DIRECT. It serves machines that forbid io_uring and comparisons with other tools.
//
// io_submit may take fewer operations than offered when the kernel is short of requests. The caller submits the rest
// again. With buffered files io_submit would block, so this path is direct only.
#include <libaio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/path_traits.hpp"
#include "path/check.hpp"
#include "path/make.hpp"
#include "path/ready.hpp"

namespace penstock::path {
namespace {

class AioPath final : public Path {
  public:
    explicit AioPath(const PathOptions& options) {
        capabilities_.kind = PathKind::aio;
        capabilities_.bypasses_cache = bypasses_cache(PathKind::aio);
        capabilities_.asynchronous = true;
        capabilities_.max_in_flight = std::clamp(options.depth, 1u, kQueueDepthMax);
        const int result = io_setup(static_cast<int>(capabilities_.max_in_flight), &context_);
        if (result == 0) return;
        ErrorInfo info = errno_info("make path aio", {}, -result);
        info.code = ErrorCode::unsupported;
        info.cause = std::string("io_setup: ") + std::strerror(-result);
        info.advice = result == -EAGAIN ? "raise fs.aio-max-nr with sysctl, or use io_uring" : "use uring or direct";
        throw Error(std::move(info));
    }
    ~AioPath() override {
        std::array<Completion, 32> ignored;
        while (in_flight_ > 0) reap(ignored, Deadline::never());
        io_destroy(context_);
    }
    AioPath(const AioPath&) = delete;
    AioPath& operator=(const AioPath&) = delete;
    const Capabilities& capabilities() const noexcept override { return capabilities_; }

    std::size_t submit(std::span<const Operation> operations) override;
    std::size_t reap(std::span<Completion> completions, Deadline deadline) override;

  private:
    std::size_t submit_run(std::span<const Operation> operations);
    bool refuse(const Operation& operation);
    std::size_t collect(std::span<Completion> completions, Deadline deadline);

    io_context_t context_ = nullptr;
    Capabilities capabilities_;
    Ready ready_;                // completions of operations that a check or io_submit refused
    std::size_t in_flight_ = 0;  // in the kernel or in ready_, not reaped
    std::vector<iocb> blocks_;   // of one submission; io_submit copies them
    std::vector<iocb*> pointers_;
};

iocb block_of(const Operation& operation) noexcept {
    iocb block{};
    const int fd = operation.file->direct_fd;
    const auto offset = static_cast<long long>(operation.offset_bytes);
    if (operation.direction == Direction::read) {
        io_prep_pread(&block, fd, operation.memory, operation.bytes, offset);
    } else {
        io_prep_pwrite(&block, fd, operation.memory, operation.bytes, offset);
    }
    block.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(operation.tag));
    return block;
}
static_assert(sizeof(void*) == sizeof(std::uint64_t), "a tag travels in iocb::data");

bool AioPath::refuse(const Operation& operation) {
    const Completion refused = check(operation, capabilities_);
    if (refused.status == ErrorCode::ok) return false;
    ready_.push(refused);
    return true;
}

// Offers a run of valid operations and returns how many the kernel took. An operation that the kernel refuses counts as
// taken and completes with its error. So does one that gets EAGAIN while nothing is in flight, because no completion
// would end the wait.
std::size_t AioPath::submit_run(std::span<const Operation> operations) {
    blocks_.clear();
    pointers_.clear();
    for (const Operation& operation : operations) blocks_.push_back(block_of(operation));
    for (iocb& block : blocks_) pointers_.push_back(&block);
    std::size_t taken = 0;
    while (taken < operations.size()) {
        const int result = io_submit(context_, static_cast<long>(operations.size() - taken), pointers_.data() + taken);
        if (result == -EINTR) continue;
        if (result == -EAGAIN && in_flight_ + taken > 0) break;
        if (result < 0) ready_.push(completion_of(operations[taken].tag, result));
        taken += result < 0 ? 1 : static_cast<std::size_t>(result);
        if (result == 0) break;
    }
    return taken;
}

std::size_t AioPath::submit(std::span<const Operation> operations) {
    operations = operations.first(std::min<std::size_t>(operations.size(), capabilities_.max_in_flight - in_flight_));
    std::size_t taken = 0;
    while (taken < operations.size()) {
        std::size_t run = 0;  // valid operations up to the next invalid one
        while (taken + run < operations.size() &&
               check(operations[taken + run], capabilities_).status == ErrorCode::ok) {
            ++run;
        }
        const std::size_t went = run == 0 ? refuse(operations[taken]) : submit_run(operations.subspan(taken, run));
        taken += went;
        in_flight_ += went;
        if (went < run) break;
    }
    return taken;
}

std::size_t AioPath::collect(std::span<Completion> completions, Deadline deadline) {
    std::array<io_event, 32> events;
    const auto room = static_cast<long>(std::min(events.size(), completions.size()));
    const auto left = deadline.left();
    timespec limit{};
    limit.tv_sec = static_cast<std::time_t>(left.count() / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
    const int found = io_getevents(context_, 1, room, events.data(), &limit);
    for (int i = 0; i < found; ++i) {
        const auto& event = events[static_cast<std::size_t>(i)];
        completions[static_cast<std::size_t>(i)] =
            completion_of(reinterpret_cast<std::uintptr_t>(event.data), static_cast<std::int64_t>(event.res));
    }
    return found > 0 ? static_cast<std::size_t>(found) : 0;
}

std::size_t AioPath::reap(std::span<Completion> completions, Deadline deadline) {
    std::size_t count = ready_.pop(completions);
    in_flight_ -= count;
    while (in_flight_ > ready_.size() && count < completions.size()) {
        const std::size_t found = collect(completions.subspan(count), count > 0 ? Deadline::now() : deadline);
        count += found;
        in_flight_ -= found;
        if (count > 0 || deadline.passed()) break;
    }
    return count;
}

}  // namespace

std::unique_ptr<Path> make_aio(PathKind, const PathOptions& options) { return std::make_unique<AioPath>(options); }

}  // namespace penstock::path
