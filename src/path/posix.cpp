// The buffered and direct paths: submit() makes one pread or pwrite for each operation and takes one operation at a
// time. The caller gets each completion before the next operation starts, and can do its own work in between.
#include <cerrno>

#include "base/path_traits.hpp"
#include "os/system.hpp"
#include "path/check.hpp"
#include "path/make.hpp"
#include "path/ready.hpp"

namespace penstock::path {
namespace {

class PosixPath final : public Path {
  public:
    PosixPath(PathKind kind, const PathOptions& options)
        : system_(options.system != nullptr ? *options.system : os::real_system()) {
        capabilities_.kind = kind;
        capabilities_.bypasses_cache = bypasses_cache(kind);
    }
    const Capabilities& capabilities() const noexcept override { return capabilities_; }

    std::size_t submit(std::span<const Operation> operations) override {
        if (operations.empty() || !ready_.empty()) return 0;
        ready_.push(work(operations.front()));
        return 1;
    }

    std::size_t reap(std::span<Completion> completions, Deadline) override { return ready_.pop(completions); }

  private:
    Completion work(const Operation& operation) {
        const Completion refused = check(operation, capabilities_);
        if (refused.status != ErrorCode::ok) return refused;
        const int fd = fd_of(*operation.file, capabilities_);
        const ssize_t count = operation.direction == Direction::read
                                  ? system_.pread(fd, operation.memory, operation.bytes, operation.offset_bytes)
                                  : system_.pwrite(fd, operation.memory, operation.bytes, operation.offset_bytes);
        return completion_of(operation.tag, count < 0 ? -errno : count);
    }

    os::System& system_;
    Capabilities capabilities_;
    Ready ready_;
};

}  // namespace

std::unique_ptr<Path> make_posix(PathKind kind, const PathOptions& options) {
    return std::make_unique<PosixPath>(kind, options);
}

}  // namespace penstock::path
