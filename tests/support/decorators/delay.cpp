// See delay.hpp. Keeps held completions in a sorted list. Waits in the inner path while that has work, and otherwise
// sleeps.
#include "support/decorators/delay.hpp"

#include <algorithm>
#include <array>
#include <thread>

namespace penstock::path {

void Delay::hold(const Completion& completion, Clock::time_point when) {
    const auto later = [](const Held& held, Clock::time_point time) { return held.when > time; };
    held_.insert(std::lower_bound(held_.begin(), held_.end(), when, later), Held{when, completion});
}

std::size_t Delay::release(std::span<Completion> completions) {
    const Clock::time_point now = Clock::now();
    std::size_t count = 0;
    while (count < completions.size() && !held_.empty() && held_.back().when <= now) {
        completions[count++] = held_.back().completion;
        held_.pop_back();
    }
    outstanding_ -= count;
    return count;
}

Deadline Delay::next(Deadline deadline) const {
    return held_.empty() ? deadline : Deadline::at(std::min(deadline.when(), held_.back().when));
}

void Delay::collect(Deadline deadline) {
    std::array<Completion, 32> arrived;
    const std::size_t count = inner_.reap(arrived, deadline);
    for (Completion& completion : std::span(arrived).first(count)) {
        if (const auto when = admit_(completion)) hold(completion, *when);
    }
    if (count > 0 || deadline.passed()) return;
    // The inner path has nothing in flight. Short sleeps avoid a special case for a deadline of never().
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(deadline.left(), std::chrono::milliseconds(1)));
}

std::size_t Delay::reap(std::span<Completion> completions, Deadline deadline) {
    if (completions.empty()) return 0;
    collect(Deadline::now());
    while (outstanding_ > 0) {
        const std::size_t count = release(completions);
        if (count > 0 || deadline.passed()) return count;
        collect(next(deadline));
    }
    return 0;
}

}  // namespace penstock::path
