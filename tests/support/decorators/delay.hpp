// Delay: holds completions back until their time. The throttle and fault decorators share it.
//
// It stands between an inner path and the caller's reap. For each completion of the inner path, `admit` says when the
// caller may see it, or that it never does. Only the thread that owns the decorator uses it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "path/path.hpp"

namespace penstock::path {

class Delay {
  public:
    // Returns when the caller may see a completion; nullopt: never, it is lost. May change the completion.
    using Admit = std::function<std::optional<Clock::time_point>(Completion&)>;

    explicit Delay(Path& inner, Admit admit) : inner_(inner), admit_(std::move(admit)) {}

    // Returns how many more operations the caller may have in flight. Held and lost completions count as in flight.
    std::size_t room() const noexcept { return inner_.capabilities().max_in_flight - outstanding_; }
    void submitted(std::size_t count) noexcept { outstanding_ += count; }
    void hold(const Completion& completion, Clock::time_point when);
    // The contract of Path::reap. A lost completion stays in flight for ever, so only the deadline ends a wait for it.
    std::size_t reap(std::span<Completion> completions, Deadline deadline);

  private:
    struct Held {
        Clock::time_point when;
        Completion completion;
    };
    void collect(Deadline deadline);
    std::size_t release(std::span<Completion> completions);
    Deadline next(Deadline deadline) const;

    Path& inner_;
    Admit admit_;
    std::vector<Held> held_;       // by time, latest first
    std::size_t outstanding_ = 0;  // submitted and not yet shown to the caller
};

}  // namespace penstock::path
