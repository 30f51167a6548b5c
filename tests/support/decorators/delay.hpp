// Delay: holds completions until their time. What the throttle and fault decorators share.
//
// It stands between an inner path and the caller's reap: what the inner path completes is shown to `admit`, which says
// when the caller may see it, or never. Used by the one thread that owns the decorator.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "penstock/path.hpp"

namespace penstock::path {

class Delay {
  public:
    // When a completion may be seen; nullopt: never (lost). May change the completion.
    using Admit = std::function<std::optional<Clock::time_point>(Completion&)>;

    explicit Delay(Path& inner, Admit admit) : inner_(inner), admit_(std::move(admit)) {}

    // How many more operations the caller may have in flight: held and lost completions count.
    std::size_t room() const noexcept { return inner_.capabilities().max_in_flight - outstanding_; }
    void submitted(std::size_t count) noexcept { outstanding_ += count; }
    void hold(const Completion& completion, Clock::time_point when);
    // The contract of Path::reap. A lost completion is in flight for ever: only the deadline ends such a wait.
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
    std::size_t outstanding_ = 0;  // submitted and not shown to the caller
};

}  // namespace penstock::path
