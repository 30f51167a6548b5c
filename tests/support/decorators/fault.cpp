// See fault.hpp. Faults are chosen at submission. A refused operation never reaches the inner path, and a short count
// reaches it as a shorter operation. All other faults change the completion.
#include "support/decorators/fault.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "path/check.hpp"
#include "penstock/stamp.hpp"
#include "support/decorators/delay.hpp"
#include "support/decorators/pending.hpp"

namespace penstock::path {
namespace {

// What happens to one operation: at most `bytes` of it move. If `error` is not 0, it fails and nothing moves.
struct Verdict {
    FaultKind kind = FaultKind::none;
    std::uint64_t bytes = 0;
    int error = 0;
};

// What happens to a completion.
struct Mark {
    FaultKind kind = FaultKind::none;
    void* corrupt = nullptr;
};

class Fault final : public Path {
  public:
    Fault(std::unique_ptr<Path> inner, const FaultOptions& options)
        : inner_(std::move(inner)),
          options_(options),
          delay_(*inner_, [this](Completion& done) { return admit(done); }) {}
    const Capabilities& capabilities() const noexcept override { return inner_->capabilities(); }
    void tidy() noexcept override { inner_->tidy(); }

    std::size_t submit(std::span<const Operation> operations) override {
        std::size_t taken = 0;
        while (taken < operations.size() && delay_.room() > 0 && submit_one(operations[taken])) ++taken;
        return taken;
    }

    std::size_t reap(std::span<Completion> completions, Deadline deadline) override {
        return delay_.reap(completions, deadline);
    }

  private:
    bool submit_one(const Operation& operation);
    FaultKind drawn() const;
    Verdict judge(const Operation& operation) const;
    void cut_before(std::uint64_t limit, int error, const Operation& operation, Verdict& verdict) const;
    std::optional<Clock::time_point> admit(Completion& done);

    std::unique_ptr<Path> inner_;
    FaultOptions options_;
    Delay delay_;
    Pending<Mark> marks_;
    std::uint64_t number_ = 0;  // the number of the next operation
};

FaultKind Fault::drawn() const {
    for (const FaultStep& step : options_.script) {
        if (step.operation == number_) return step.kind;
    }
    // 53 bits make a double in [0, 1). Each kind of fault has its own draw.
    const auto hits = [this](double chance, std::uint64_t kind) {
        return static_cast<double>(stamp_word(options_.seed, number_ * 8 + kind) >> 11) * 0x1p-53 < chance;
    };
    if (hits(options_.short_count, 0)) return FaultKind::short_count;
    if (hits(options_.interrupted, 1)) return FaultKind::interrupted;
    if (hits(options_.again, 2)) return FaultKind::again;
    if (hits(options_.lose, 3)) return FaultKind::lose;
    return hits(options_.delayed, 4) ? FaultKind::delay : FaultKind::none;
}

// Bytes before `limit` move, in whole alignment units. An operation without such bytes gets the error.
void Fault::cut_before(std::uint64_t limit, int error, const Operation& operation, Verdict& verdict) const {
    const std::uint64_t unit = capabilities().bypasses_cache ? operation.file->offset_alignment : 1;
    const std::uint64_t before = limit > operation.offset_bytes ? align_down(limit - operation.offset_bytes, unit) : 0;
    verdict.bytes = std::min(verdict.bytes, before);
    if (verdict.bytes == 0) verdict.error = error;
}

Verdict Fault::judge(const Operation& operation) const {
    Verdict verdict{drawn(), operation.bytes, 0};
    const bool writes = operation.direction == Direction::write;
    switch (verdict.kind) {
        case FaultKind::interrupted:
            verdict.error = EINTR;
            break;
        case FaultKind::again:
            verdict.error = EAGAIN;
            break;
        case FaultKind::io_error:
            verdict.error = EIO;
            break;
        case FaultKind::no_space:
            verdict.error = writes ? ENOSPC : 0;
            break;
        case FaultKind::short_count: {
            const std::uint64_t unit = capabilities().bypasses_cache ? operation.file->offset_alignment : 1;
            verdict.bytes =
                std::clamp(align_down(operation.bytes / 2, unit), std::min(unit, operation.bytes), operation.bytes);
            break;
        }
        default:
            break;
    }
    const std::uint64_t end = operation.offset_bytes + operation.bytes;
    if (options_.bad_from && end > *options_.bad_from && operation.offset_bytes < options_.bad_to) {
        cut_before(*options_.bad_from, EIO, operation, verdict);
    }
    if (writes && options_.full_from && end > *options_.full_from) {
        cut_before(*options_.full_from, ENOSPC, operation, verdict);
    }
    return verdict;
}

bool Fault::submit_one(const Operation& operation) {
    const Verdict verdict = operation.file == nullptr ? Verdict{.bytes = operation.bytes} : judge(operation);
    if (verdict.error != 0) {
        delay_.hold(completion_of(operation.tag, -verdict.error), Clock::now());
    } else {
        Operation shorter = operation;
        shorter.bytes = verdict.bytes;
        if (inner_->submit({&shorter, 1}) == 0) return false;
        const bool spoils = verdict.kind == FaultKind::corrupt && operation.direction == Direction::read;
        marks_.put(operation.tag, {verdict.kind, spoils ? operation.memory : nullptr});
    }
    delay_.submitted(1);
    ++number_;
    return true;
}

std::optional<Clock::time_point> Fault::admit(Completion& done) {
    const Mark mark = marks_.take(done.tag).value_or(Mark{});
    if (mark.kind == FaultKind::lose) return std::nullopt;
    if (mark.corrupt != nullptr && done.bytes > 0) *static_cast<unsigned char*>(mark.corrupt) ^= 1;
    return Clock::now() + (mark.kind == FaultKind::delay ? options_.delay : std::chrono::nanoseconds(0));
}

}  // namespace

std::unique_ptr<Path> faulty(std::unique_ptr<Path> inner, const FaultOptions& options) {
    return std::make_unique<Fault>(std::move(inner), options);
}

}  // namespace penstock::path
