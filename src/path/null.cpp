// The null path: it completes every operation at once and moves no bytes. It measures the cost of all layers above the
// paths.
#include "path/check.hpp"
#include "path/make.hpp"
#include "path/ready.hpp"

namespace penstock::path {
namespace {

class NullPath final : public Path {
  public:
    explicit NullPath(const PathOptions& options) {
        capabilities_.kind = PathKind::null;
        capabilities_.max_in_flight = std::max(options.depth, 1u);
    }
    const Capabilities& capabilities() const noexcept override { return capabilities_; }

    std::size_t submit(std::span<const Operation> operations) override {
        const std::size_t count = std::min<std::size_t>(operations.size(), capabilities_.max_in_flight - ready_.size());
        for (const Operation& operation : operations.first(count)) {
            Completion done = check(operation, capabilities_);
            if (done.status == ErrorCode::ok) done.bytes = operation.bytes;
            ready_.push(done);
        }
        return count;
    }

    std::size_t reap(std::span<Completion> completions, Deadline) override { return ready_.pop(completions); }

  private:
    Capabilities capabilities_;
    Ready ready_;
};

}  // namespace

std::unique_ptr<Path> make_null(PathKind, const PathOptions& options) { return std::make_unique<NullPath>(options); }

}  // namespace penstock::path
