// See count.hpp. Remembers an operation's direction and size by its tag until its completion passes.
#include "support/decorators/count.hpp"

#include <utility>

#include "support/decorators/pending.hpp"

namespace penstock::path {
namespace {

void raise_to(std::atomic<std::uint64_t>& peak, std::uint64_t value) noexcept {
    std::uint64_t seen = peak.load(std::memory_order_relaxed);
    while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
}

class Count final : public Path {
  public:
    Count(std::unique_ptr<Path> inner, std::shared_ptr<PathCounters> counters)
        : inner_(std::move(inner)), counters_(std::move(counters)) {}
    const Capabilities& capabilities() const noexcept override { return inner_->capabilities(); }
    void tidy() noexcept override { inner_->tidy(); }

    std::size_t submit(std::span<const Operation> operations) override {
        const std::size_t count = inner_->submit(operations);
        for (const Operation& operation : operations.first(count)) {
            pending_.put(operation.tag, {operation.direction, operation.bytes});
        }
        counters_->submitted.fetch_add(count, std::memory_order_relaxed);
        raise_to(counters_->peak_in_flight, pending_.size());
        return count;
    }

    std::size_t reap(std::span<Completion> completions, Deadline deadline) override {
        const std::size_t count = inner_->reap(completions, deadline);
        for (const Completion& completion : completions.first(count)) add(completion);
        return count;
    }

  private:
    struct Asked {
        Direction direction;
        std::uint64_t bytes;
    };

    void add(const Completion& completion) {
        const auto asked = pending_.take(completion.tag);
        const auto plus = [](std::atomic<std::uint64_t>& counter, std::uint64_t value) {
            counter.fetch_add(value, std::memory_order_relaxed);
        };
        plus(counters_->completed, 1);
        if (completion.status != ErrorCode::ok) {
            plus(counters_->failed, 1);
            return;
        }
        if (!asked) return;
        if (completion.bytes < asked->bytes) plus(counters_->short_counts, 1);
        plus(asked->direction == Direction::read ? counters_->read_bytes : counters_->write_bytes, completion.bytes);
        if (completion.lent != nullptr) plus(counters_->lent_bytes, completion.bytes);
    }

    std::unique_ptr<Path> inner_;
    std::shared_ptr<PathCounters> counters_;
    Pending<Asked> pending_;
};

}  // namespace

std::unique_ptr<Path> counted(std::unique_ptr<Path> inner, std::shared_ptr<PathCounters> counters) {
    return std::make_unique<Count>(std::move(inner), std::move(counters));
}

}  // namespace penstock::path
