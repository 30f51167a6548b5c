// See read_ahead.hpp.
#include "hmatrix/multiply/source/read_ahead.hpp"

#include <algorithm>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::hmatrix {

void ReadAhead::begin(const Sweep& sweep) {
    order_.begin(sweep);
    for (Place& place : places_) {
        if (place.state == State::taken || place.state == State::wanted) place.state = State::free;
    }
    want();
}

// Takes until `batch` is needed, at most places(): a larger number makes no difference.
std::int64_t ReadAhead::steps_until(std::int64_t batch) const noexcept {
    const std::int64_t steps = order_.steps_until(batch);
    return steps < 0 ? places() : std::min(steps, places());
}

ReadAhead::Place* ReadAhead::find(std::int64_t batch) noexcept {
    for (Place& place : places_) {
        if (place.batch == batch && place.state != State::free) return &place;
    }
    return nullptr;
}

// A free place, or the place whose batch is needed last if that is later than `steps`. Null if there is none.
ReadAhead::Place* ReadAhead::place_for(std::int64_t steps) noexcept {
    Place* found = nullptr;
    std::int64_t latest = steps;
    for (Place& place : places_) {
        if (place.state == State::free) return &place;
        if (place.state != State::ready && place.state != State::wanted) continue;
        const std::int64_t needed = steps_until(place.batch);
        if (needed <= latest) continue;
        latest = needed;
        found = &place;
    }
    return found;
}

void ReadAhead::want(Place& place, std::int64_t batch) const { place = {batch, tiers(), State::wanted, nullptr}; }

void ReadAhead::want() {
    for (std::int64_t step = 0; step < places(); ++step) {
        const std::int64_t batch = order_.upcoming(step);
        if (batch < 0) return;
        Place* place = find(batch);
        if (place != nullptr && (place->state != State::ready || place->tiers >= tiers())) continue;
        if (place == nullptr) place = place_for(step);
        if (place == nullptr) return;
        want(*place, batch);
    }
}

ReadAhead::Fetch ReadAhead::start() {
    Place* first = nullptr;
    for (Place& place : places_) {
        if (place.state != State::wanted) continue;
        if (first == nullptr || steps_until(place.batch) < steps_until(first->batch)) first = &place;
    }
    if (first == nullptr) return {};
    first->state = State::filling;
    return {first - places_.data(), first->batch, first->tiers};
}

void ReadAhead::fetched(std::int64_t place, std::exception_ptr failure) {
    places_[place].failure = std::move(failure);
    places_[place].state = State::ready;
}

std::int64_t ReadAhead::ready(std::int64_t batch) {
    want();
    const Place* const place = find(batch);
    const auto taken = [](const Place& one) { return one.state == State::taken; };
    if (order_.upcoming(0) != batch || (place != nullptr && taken(*place))) {
        throw Error(ErrorCode::internal, "take a batch",
                    "batch " + std::to_string(batch) + " is taken out of order, or again",
                    "take the batches in the order of the sweep and give them back");
    }
    if (place != nullptr) return place->state == State::ready ? place - places_.data() : -1;
    // Batches that an earlier sweep wanted are still arriving in other places.
    if (std::all_of(places_.begin(), places_.end(), taken)) {
        throw Error(ErrorCode::internal, "take a batch", "all " + std::to_string(places()) + " places are in use",
                    "give back a batch that was taken");
    }
    return -1;
}

void ReadAhead::take(std::int64_t place) {
    Place& at = places_[place];
    if (at.failure) {
        at.state = State::free;
        std::rethrow_exception(std::exchange(at.failure, nullptr));
    }
    at.state = State::taken;
    order_.advance();
    want();
}

void ReadAhead::give_back(std::int64_t batch) {
    if (Place* const place = find(batch)) place->state = State::free;
    want();
}

}  // namespace penstock::hmatrix
