// See throttle.hpp. Uses a model and does not sleep: each operation gets its completion time when it is submitted. So a
// caller that reaps late sees what a slow disk would have done meanwhile.
#include "support/decorators/throttle.hpp"

#include <algorithm>
#include <utility>

#include "support/decorators/delay.hpp"
#include "support/decorators/pending.hpp"

namespace penstock::path {
namespace {

class Throttle final : public Path {
  public:
    Throttle(std::unique_ptr<Path> inner, const ThrottleOptions& options)
        : inner_(std::move(inner)),
          options_(options),
          delay_(*inner_, [this](Completion& done) { return times_.take(done.tag); }) {}
    const Capabilities& capabilities() const noexcept override { return inner_->capabilities(); }
    void tidy() noexcept override { inner_->tidy(); }

    std::size_t submit(std::span<const Operation> operations) override {
        const Clock::time_point now = Clock::now();
        const std::size_t count = inner_->submit(operations.first(std::min(operations.size(), delay_.room())));
        for (const Operation& operation : operations.first(count)) times_.put(operation.tag, finish(operation, now));
        delay_.submitted(count);
        return count;
    }

    std::size_t reap(std::span<Completion> completions, Deadline deadline) override {
        return delay_.reap(completions, deadline);
    }

  private:
    Clock::time_point finish(const Operation& operation, Clock::time_point now) {
        busy_until_ = std::max(busy_until_, now);
        if (options_.bandwidth_bytes_per_s > 0) {
            const double seconds = static_cast<double>(operation.bytes) / options_.bandwidth_bytes_per_s;
            busy_until_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
        }
        return busy_until_ + std::chrono::nanoseconds(options_.latency_ns);
    }

    std::unique_ptr<Path> inner_;
    ThrottleOptions options_;
    Delay delay_;
    Clock::time_point busy_until_ = Clock::time_point::min();
    Pending<Clock::time_point> times_;
};

}  // namespace

std::unique_ptr<Path> throttled(std::unique_ptr<Path> inner, const ThrottleOptions& options) {
    return std::make_unique<Throttle>(std::move(inner), options);
}

}  // namespace penstock::path
