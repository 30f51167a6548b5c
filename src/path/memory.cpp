// The memory path: its files are byte vectors of a MemoryStore. reap() does the work, oldest operation first. So a path
// that is destroyed with operations pending, and memory that is reused too early, behave as with a real asynchronous
// path.
#include <deque>

#include "path/check.hpp"
#include "path/make.hpp"
#include "path/memory_store.hpp"

namespace penstock::path {
namespace {

class MemoryPath final : public Path {
  public:
    explicit MemoryPath(const PathOptions& options) : store_(options.store) {
        if (!store_) throw Error(ErrorCode::invalid_argument, "make path memory", "PathOptions::store is not set");
        capabilities_.kind = PathKind::memory;
        capabilities_.asynchronous = true;
        capabilities_.max_in_flight = std::max(options.depth, 1u);
    }
    ~MemoryPath() override {
        for (const Operation& operation : queued_) work(operation);
    }
    const Capabilities& capabilities() const noexcept override { return capabilities_; }

    std::size_t submit(std::span<const Operation> operations) override {
        const std::size_t count =
            std::min<std::size_t>(operations.size(), capabilities_.max_in_flight - queued_.size());
        queued_.insert(queued_.end(), operations.begin(), operations.begin() + static_cast<std::ptrdiff_t>(count));
        return count;
    }

    std::size_t reap(std::span<Completion> completions, Deadline) override {
        std::size_t count = 0;
        for (; count < completions.size() && !queued_.empty(); ++count) {
            completions[count] = work(queued_.front());
            queued_.pop_front();
        }
        return count;
    }

  private:
    Completion work(const Operation& operation) {
        const Completion refused = check(operation, capabilities_);
        if (refused.status != ErrorCode::ok) return refused;
        const std::span memory(static_cast<std::byte*>(operation.memory), operation.bytes);
        const std::uint64_t id = operation.file->id;
        return completion_of(operation.tag, operation.direction == Direction::read
                                                ? store_->read(id, operation.offset_bytes, memory)
                                                : store_->write(id, operation.offset_bytes, memory));
    }

    Capabilities capabilities_;
    std::shared_ptr<MemoryStore> store_;
    std::deque<Operation> queued_;
};

}  // namespace

std::unique_ptr<Path> make_memory(PathKind, const PathOptions& options) {
    return std::make_unique<MemoryPath>(options);
}

}  // namespace penstock::path
