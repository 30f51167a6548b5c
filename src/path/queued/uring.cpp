// The io_uring paths, direct and buffered: one ring for each path, one system call for each batch.
//
// The ring is created disabled, and the first submit enables it. So it belongs to the thread that submits
// (SINGLE_ISSUER), even if another thread made the path. That thread must also destroy the path, or must have ended
// before. The user_data of a request holds its flight number, which finds its tag, and the slot of its file if the file
// is registered.
#include <liburing.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/path_traits.hpp"
#include "os/refusal.hpp"
#include "path/check.hpp"
#include "path/make.hpp"
#include "path/queued/uring_files.hpp"
#include "path/ready.hpp"

namespace penstock::path {
namespace {

constexpr std::uint64_t kRegisteredPieceBytes = kGiB;  // the kernel's limit for one registered buffer

// The best setup comes first. Older kernels refuse it with EINVAL.
constexpr std::array<unsigned, 3> kSetups{
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED, IORING_SETUP_R_DISABLED};

const char* advice_for(int error_number) noexcept {
    if (os::is_out_of_descriptors(error_number)) return os::advice_for(error_number);
    if (error_number == ENOMEM) return "raise the memlock limit (ulimit -l)";
    return "needs Linux 5.11, sysctl kernel.io_uring_disabled=0 and a container that allows io_uring_setup";
}

// Owns a ring of the kernel.
class Ring {
  public:
    Ring(const char* name, unsigned depth) {
        int result = -EINVAL;
        for (const unsigned flags : kSetups) {
            io_uring_params params{};
            params.flags = flags;
            result = io_uring_queue_init_params(depth, &ring_, &params);
            if (result == 0 && (params.features & IORING_FEAT_EXT_ARG) == 0) {
                io_uring_queue_exit(&ring_);
                result = -ENOSYS;
            }
            if (result != -EINVAL) break;
        }
        if (result == 0) return;
        ErrorInfo info = errno_info(std::string("make path ") + name, {}, -result);
        info.code = ErrorCode::unsupported;
        info.cause = std::string("io_uring_setup: ") + std::strerror(-result);
        info.advice = advice_for(-result);
        throw Error(std::move(info));
    }
    ~Ring() { io_uring_queue_exit(&ring_); }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    io_uring* get() noexcept { return &ring_; }

  private:
    io_uring ring_{};
};

class UringPath final : public Path {
  public:
    UringPath(PathKind kind, const PathOptions& options, std::uint32_t register_from)
        : system_(options.system != nullptr ? *options.system : os::real_system()),
          ring_(to_string(kind), std::clamp(options.depth, 1u, kQueueDepthMax)),
          files_(system_, ring_.get()->ring_fd, register_from) {
        capabilities_.kind = kind;
        capabilities_.bypasses_cache = bypasses_cache(kind);
        capabilities_.asynchronous = true;
        capabilities_.max_in_flight = std::clamp(options.depth, 1u, kQueueDepthMax);
        for (std::uint64_t i = 0; i < capabilities_.max_in_flight; ++i) flights_.push_back(i + 1);
        register_arena(options.arena);
        if (files_.refusal() != noted_refusal_) note_refusal();
    }
    ~UringPath() override {
        std::array<Completion, 32> ignored;
        while (in_flight_ > 0) reap(ignored, Deadline::never());
        // Closing a ring frees its locked memory some time later, but the next ring may need that memory at once.
        if (!arena_.empty()) io_uring_unregister_buffers(ring_.get());
    }
    const Capabilities& capabilities() const noexcept override { return capabilities_; }

    std::size_t submit(std::span<const Operation> operations) override;
    std::size_t reap(std::span<Completion> completions, Deadline deadline) override;

  private:
    void register_arena(std::span<std::byte> arena);
    void note_refusal();
    void note(const std::string& text);
    void enable();
    std::uint64_t begin_request(std::uint64_t tag, std::uint32_t file_slot) noexcept;
    std::uint64_t end_request(std::uint64_t user_data) noexcept;
    int registered_index(const Operation& operation) const noexcept;
    void prepare(const Operation& operation, std::size_t run);
    void flush();
    void take_back(int error);
    std::size_t collect(std::span<Completion> completions);
    void wait(Deadline deadline);

    os::System& system_;
    Ring ring_;
    RingFiles files_;
    Capabilities capabilities_;
    // by flight number: the tag of a request in flight, or else the next unused number
    std::vector<std::uint64_t> flights_;
    std::uint64_t unused_flight_ = 0;
    std::span<std::byte> arena_;  // the registered part
    Ready ready_;                 // refused, or taken back from the submission queue
    std::size_t in_flight_ = 0;   // in the ring or in ready_, not reaped
    bool enabled_ = false;
    int noted_refusal_ = 0;
};

void UringPath::register_arena(std::span<std::byte> arena) {
    if (arena.empty()) return;
    std::vector<iovec> pieces;
    for (std::size_t at = 0; at < arena.size(); at += kRegisteredPieceBytes) {
        pieces.push_back({arena.data() + at, std::min<std::size_t>(arena.size() - at, kRegisteredPieceBytes)});
    }
    const int result = io_uring_register_buffers(ring_.get(), pieces.data(), static_cast<unsigned>(pieces.size()));
    if (result == 0) {
        arena_ = arena;
        return;
    }
    note(std::string("registered buffers: ") + std::strerror(-result) +
         (result == -ENOMEM ? "; raise the memlock limit (ulimit -l) or lower the staging budget" : ""));
}

void UringPath::note_refusal() {
    noted_refusal_ = files_.refusal();
    note(std::string("registered files: ") + std::strerror(noted_refusal_) + "; plain descriptors are used");
}

void UringPath::note(const std::string& text) {
    capabilities_.notes += (capabilities_.notes.empty() ? "" : "; ") + text;
}

// A plain system call, because the shared liburing 2.3 does not export io_uring_enable_rings.
void UringPath::enable() {
    enabled_ = system_.io_uring_register(ring_.get()->ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) == 0;
}

// Returns -1 if the memory is not registered or spans two registered pieces.
int UringPath::registered_index(const Operation& operation) const noexcept {
    const auto start = reinterpret_cast<std::uintptr_t>(operation.memory);
    const auto base = reinterpret_cast<std::uintptr_t>(arena_.data());
    if (start < base || start - base >= arena_.size() || operation.bytes > arena_.size() - (start - base)) return -1;
    const std::uint64_t first = (start - base) / kRegisteredPieceBytes;
    const std::uint64_t last = (start - base + operation.bytes - 1) / kRegisteredPieceBytes;
    return first == last ? static_cast<int>(first) : -1;
}

// `run`: how many operations, this one included, follow each other on this file.
void UringPath::prepare(const Operation& operation, std::size_t run) {
    const int descriptor = fd_of(*operation.file, capabilities_);
    const std::uint32_t file_slot = files_.begin(descriptor, run);
    const bool registered = file_slot != RingFiles::kNoSlot;
    const int fd = registered ? static_cast<int>(file_slot) : descriptor;
    const int index = registered_index(operation);
    const auto bytes = static_cast<unsigned>(operation.bytes);
    io_uring_sqe* entry = io_uring_get_sqe(ring_.get());  // never null: the queue has max_in_flight entries
    if (operation.direction == Direction::read) {
        if (index >= 0) {
            io_uring_prep_read_fixed(entry, fd, operation.memory, bytes, operation.offset_bytes, index);
        } else {
            io_uring_prep_read(entry, fd, operation.memory, bytes, operation.offset_bytes);
        }
    } else if (index >= 0) {
        io_uring_prep_write_fixed(entry, fd, operation.memory, bytes, operation.offset_bytes, index);
    } else {
        io_uring_prep_write(entry, fd, operation.memory, bytes, operation.offset_bytes);
    }
    if (registered) io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data64(entry, begin_request(operation.tag, file_slot));
}

// Begins a request. Returns its user_data: the flight number in the low half, the slot of its file in the high half.
std::uint64_t UringPath::begin_request(std::uint64_t tag, std::uint32_t file_slot) noexcept {
    const std::uint64_t flight = unused_flight_;
    unused_flight_ = std::exchange(flights_[flight], tag);
    return std::uint64_t{file_slot} << 32 | flight;
}

// Ends a request. Returns its tag and releases its flight number and its use of the file's slot.
std::uint64_t UringPath::end_request(std::uint64_t user_data) noexcept {
    const std::uint64_t flight = user_data & UINT32_MAX;
    files_.end(static_cast<std::uint32_t>(user_data >> 32));
    return std::exchange(flights_[flight], std::exchange(unused_flight_, flight));
}

// Returns how many operations, from the first on, are on the same file.
std::size_t count_same_file(std::span<const Operation> operations) noexcept {
    const auto other = std::find_if(operations.begin(), operations.end(), [&](const Operation& operation) {
        return operation.file != operations.front().file;
    });
    return static_cast<std::size_t>(other - operations.begin());
}

std::size_t UringPath::submit(std::span<const Operation> operations) {
    const std::size_t count = std::min<std::size_t>(operations.size(), capabilities_.max_in_flight - in_flight_);
    if (!enabled_ && count > 0) enable();
    for (std::size_t i = 0, run = 0; i < count; ++i, --run) {
        if (run == 0) run = files_.worth(count - i) ? count_same_file(operations.subspan(i, count - i)) : 1;
        const Completion refused = check(operations[i], capabilities_);
        if (refused.status != ErrorCode::ok) {
            ready_.push(refused);
        } else {
            prepare(operations[i], run);
        }
    }
    in_flight_ += count;
    if (files_.refusal() != noted_refusal_) note_refusal();
    flush();
    return count;
}

// Entries that the kernel cannot take now stay queued. The next call submits them.
void UringPath::flush() {
    if (io_uring_sq_ready(ring_.get()) == 0) return;
    const int result = io_uring_submit(ring_.get());
    if (result < 0 && result != -EAGAIN && result != -EBUSY && result != -EINTR) take_back(-result);
}

// The ring itself failed, for example because a second thread submits. Entries that the kernel did not take complete
// with its error, so that no caller waits for them. No kernel thread polls the queue, so moving its tail back is safe.
void UringPath::take_back(int error) {
    io_uring_sq& queue = ring_.get()->sq;
    const unsigned head = *queue.khead;
    for (unsigned at = head; at != queue.sqe_tail; ++at) {
        const std::uint64_t tag = end_request(queue.sqes[at & *queue.kring_mask].user_data);
        ready_.push({.tag = tag, .bytes = 0, .status = code_from_errno(error), .system_code = error});
    }
    queue.sqe_head = queue.sqe_tail = head;
    *queue.ktail = head;
}

std::size_t UringPath::collect(std::span<Completion> completions) {
    std::size_t count = ready_.pop(completions);
    std::array<io_uring_cqe*, 32> entries;
    while (count < completions.size()) {
        const auto room = static_cast<unsigned>(std::min(entries.size(), completions.size() - count));
        const unsigned found = io_uring_peek_batch_cqe(ring_.get(), entries.data(), room);
        if (found == 0) break;
        for (unsigned i = 0; i < found; ++i) {
            completions[count++] = completion_of(end_request(entries[i]->user_data), entries[i]->res);
        }
        io_uring_cq_advance(ring_.get(), found);
    }
    in_flight_ -= count;
    if (in_flight_ == 0) files_.rest();
    if (files_.refusal() != noted_refusal_) note_refusal();
    return count;
}

void UringPath::wait(Deadline deadline) {
    const auto left = deadline.left();
    __kernel_timespec limit{};
    limit.tv_sec = left.count() / 1'000'000'000;
    limit.tv_nsec = left.count() % 1'000'000'000;
    io_uring_cqe* entry = nullptr;
    const int result = io_uring_submit_and_wait_timeout(ring_.get(), &entry, 1, &limit, nullptr);
    if (result >= 0 || result == -ETIME || result == -EINTR || result == -EAGAIN || result == -EBUSY) return;
    take_back(-result);
    // The ring belongs to another thread. Its completions arrive in memory when that thread ends, without a system
    // call.
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

std::size_t UringPath::reap(std::span<Completion> completions, Deadline deadline) {
    if (completions.empty()) return 0;
    while (in_flight_ > 0) {
        const std::size_t count = collect(completions);
        if (count > 0 || deadline.passed()) return count;
        wait(deadline);
    }
    return 0;
}

}  // namespace

std::unique_ptr<Path> make_uring(PathKind kind, const PathOptions& options) {
    return make_uring_registering(kind, options, kRegisterFrom);
}

std::unique_ptr<Path> make_uring_registering(PathKind kind, const PathOptions& options, std::uint32_t register_from) {
    return std::make_unique<UringPath>(kind, options, register_from);
}

}  // namespace penstock::path
