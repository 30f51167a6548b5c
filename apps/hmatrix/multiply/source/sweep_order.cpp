// See sweep_order.hpp. Tables of positions answer steps_until() at once, because a cache asks for each of its slots.
#include "hmatrix/multiply/source/sweep_order.hpp"

#include <algorithm>
#include <span>

namespace penstock::hmatrix {
namespace {

std::vector<std::int64_t> places(std::span<const std::int64_t> order) {
    if (order.empty()) return {};
    std::vector<std::int64_t> made(*std::max_element(order.begin(), order.end()) + 1, -1);
    for (std::size_t i = 0; i < order.size(); ++i) made[order[i]] = static_cast<std::int64_t>(i);
    return made;
}

std::int64_t place_of(std::int64_t batch, const std::vector<std::int64_t>& places) noexcept {
    return batch < static_cast<std::int64_t>(places.size()) ? places[batch] : -1;
}

}  // namespace

void SweepOrder::begin(const Sweep& sweep) {
    sweep_ = sweep;
    position_ = 0;
    place_now_ = places(sweep.order);
    place_next_ = places(sweep.next);
}

std::int64_t SweepOrder::upcoming(std::int64_t steps) const noexcept {
    const std::int64_t at = position_ + steps;
    const auto now = static_cast<std::int64_t>(sweep_.order.size());
    if (at < now) return sweep_.order[at];
    return at - now < static_cast<std::int64_t>(sweep_.next.size()) ? sweep_.next[at - now] : -1;
}

std::int64_t SweepOrder::steps_until(std::int64_t batch) const noexcept {
    const std::int64_t here = place_of(batch, place_now_);
    if (here >= position_) return here - position_;
    const std::int64_t there = place_of(batch, place_next_);
    return there >= 0 ? static_cast<std::int64_t>(sweep_.order.size()) - position_ + there : -1;
}

}  // namespace penstock::hmatrix
