// The mmap path: it lends a registered mapping to the device, and otherwise copies from the mapping.
//
// If another process cuts a file short, an operation must return a short count and not raise SIGBUS. Reads into staging
// memory are plain copies under a FaultGuard. process_vm_readv and process_vm_writev on the own process report faults
// too. They serve writes, reads into memory that may be bad, and reads where the guard cannot be used.
//
// The path unmaps pages that it has copied, so that a large file does not count as resident memory of the process. It
// does so only after it has reported the operation, because the caller waits for that. Writes stay within the file's
// size: the context extends the file first.
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "os/memory/fault_guard.hpp"
#include "path/check.hpp"
#include "path/make.hpp"
#include "path/mapped/mappings.hpp"
#include "path/ready.hpp"

namespace penstock::path {
namespace {

constexpr std::size_t kUnneededMax = 4;  // blocks to unmap before the path does so without a call of tidy()

// Reads one byte through the kernel. Returns false if a plain access would raise a signal, or if seccomp forbids the
// call.
bool readable(const void* memory) noexcept {
    char to = 0;
    const iovec source{const_cast<void*>(memory), 1}, target{&to, 1};
    return ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0) == 1;
}

class MmapPath final : public Path {
  public:
    explicit MmapPath(const PathOptions& options)
        : mappings_(options.mappings ? options.mappings : std::make_shared<Mappings>()), may_copy_(readable(this)) {
        capabilities_.kind = PathKind::mmap;
        capabilities_.memory = OperationMemory::lent;
        if (!may_copy_) {
            capabilities_.notes = "mmap copies: process_vm_readv is forbidden here (seccomp), registered files only";
        }
    }
    ~MmapPath() override { MmapPath::tidy(); }
    const Capabilities& capabilities() const noexcept override { return capabilities_; }

    std::size_t submit(std::span<const Operation> operations) override {
        if (operations.empty() || !ready_.empty()) return 0;
        if (unneeded_.size() >= kUnneededMax) tidy();
        ready_.push(work(operations.front()));
        return 1;
    }

    std::size_t reap(std::span<Completion> completions, Deadline) override { return ready_.pop(completions); }

    void tidy() noexcept override {
        for (const Mappings::Unneeded& pages : unneeded_) Mappings::unmap(pages);
        unneeded_.clear();
    }

  private:
    Completion work(const Operation& operation);
    Completion lend(const Operation& operation, const Mappings::View& view) const;
    Completion copy(const Operation& operation, const Mappings::View& view);
    bool guarded_read(const Operation& operation, const Mappings::View& view);
    std::uint64_t bytes_in_file(const Operation& operation, std::uint64_t copied);
    Completion explain_fault(const Operation& operation) const;

    std::shared_ptr<Mappings> mappings_;
    os::FaultGuard guard_;
    bool may_copy_;
    Capabilities capabilities_;
    Ready ready_;
    std::vector<Mappings::Unneeded> unneeded_;
};

Completion MmapPath::work(const Operation& operation) {
    const Completion refused = check(operation, capabilities_);
    if (refused.status != ErrorCode::ok) return refused;
    const Mappings::View view = mappings_->view(*operation.file, operation.offset_bytes, operation.bytes);
    if (view.error != 0) return completion_of(operation.tag, -view.error);
    if (operation.memory == nullptr) return lend(operation, view);
    return copy(operation, view);
}

// Lends only registered memory: elsewhere a plain access may raise SIGBUS.
Completion MmapPath::lend(const Operation& operation, const Mappings::View& view) const {
    if (view.bytes > 0 && !view.registered) return completion_of(operation.tag, -EOPNOTSUPP);
    Completion done = completion_of(operation.tag, static_cast<std::int64_t>(view.bytes));
    done.lent = view.memory;
    done.lent_pinned = view.registered;
    return done;
}

// EFAULT with no byte moved has three causes: the file was cut short after `view` was taken, the disk is too full to
// give a hole its page, or the caller's memory is bad. Only the last one is the caller's mistake.
Completion MmapPath::explain_fault(const Operation& operation) const {
    const bool reads = operation.direction == Direction::read;
    if (!Mappings::still_inside(*operation.file, operation.offset_bytes, 1)) {
        return completion_of(operation.tag, reads ? 0 : -EFBIG);
    }
    return completion_of(operation.tag, !reads && readable(operation.memory) ? -ENOSPC : -EFAULT);
}

// A plain copy. Returns false if the guard cannot be used or the mapping faulted. Then the caller lets the kernel copy,
// which says how many bytes it moved.
bool MmapPath::guarded_read(const Operation& operation, const Mappings::View& view) {
    if (!operation.staging || !guard_.usable() || !guard_.copy(operation.memory, view.memory, view.bytes)) return false;
    if (bytes_in_file(operation, view.bytes) != view.bytes) return false;
    if (!view.registered) mappings_->copied(*operation.file, operation.offset_bytes, view.bytes, unneeded_);
    return true;
}

// Returns how many of the copied bytes are in the file. The zeros after the file's last byte, in its last page, can be
// copied without a fault.
std::uint64_t MmapPath::bytes_in_file(const Operation& operation, std::uint64_t copied) {
    if (Mappings::still_inside(*operation.file, operation.offset_bytes, copied)) return copied;
    return std::min(copied, mappings_->view(*operation.file, operation.offset_bytes, copied).bytes);
}

Completion MmapPath::copy(const Operation& operation, const Mappings::View& view) {
    const bool reading = operation.direction == Direction::read;
    if (reading && view.bytes != 0 && guarded_read(operation, view)) {
        return completion_of(operation.tag, static_cast<std::int64_t>(view.bytes));
    }
    if (!may_copy_) return completion_of(operation.tag, -EOPNOTSUPP);
    const bool reads = operation.direction == Direction::read;
    if (view.bytes == 0) return completion_of(operation.tag, reads ? 0 : -EFBIG);
    const iovec memory{operation.memory, view.bytes};
    const iovec mapping{view.memory, view.bytes};
    const ssize_t count = reads ? ::process_vm_readv(::getpid(), &memory, 1, &mapping, 1, 0)
                                : ::process_vm_writev(::getpid(), &memory, 1, &mapping, 1, 0);
    if (count > 0 && reads) {
        return completion_of(operation.tag,
                             static_cast<std::int64_t>(bytes_in_file(operation, static_cast<std::uint64_t>(count))));
    }
    if (count >= 0) return completion_of(operation.tag, count);
    return errno == EFAULT ? explain_fault(operation) : completion_of(operation.tag, -errno);
}

}  // namespace

std::unique_ptr<Path> make_mmap(PathKind, const PathOptions& options) { return std::make_unique<MmapPath>(options); }

}  // namespace penstock::path
