// Decides which batch lies in which place of a source, and which batch to fetch next. It looks ahead of the sweep by as
// many batches as there are places, and past the end of the sweep, in the order in which the batches are needed.
//
// It moves no bytes and never waits. Requires: its owner calls it under the owner's lock. From start() to fetched() a
// place belongs to the thread that fetches. From take() to give_back() it belongs to the product.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "hmatrix/multiply/source/sweep_order.hpp"

namespace penstock::hmatrix {

class ReadAhead {
  public:
    explicit ReadAhead(std::int64_t places = 0) : places_(static_cast<std::size_t>(places)) {}

    std::int64_t places() const noexcept { return static_cast<std::int64_t>(places_.size()); }
    int tiers() const noexcept { return order_.tiers(); }

    // Begins a sweep, and frees the places that a failed sweep left taken.
    void begin(const Sweep& sweep);

    struct Fetch {
        std::int64_t place = -1;  // -1: nothing to fetch
        std::int64_t batch = -1;
        int tiers = 0;
    };
    Fetch start();
    void fetched(std::int64_t place, std::exception_ptr failure);

    // Returns the place of `batch` if it has been fetched, otherwise -1; the caller asks again after the next
    // fetched(). Throws Error{internal} if `batch` is not the next of the sweep, and if the caller holds all places.
    std::int64_t ready(std::int64_t batch);
    // Rethrows the error of the fetch. The batch is then fetched again if the caller asks for it.
    void take(std::int64_t place);
    void give_back(std::int64_t batch);

  private:
    enum class State : std::uint8_t { free, wanted, filling, ready, taken };
    struct Place {
        std::int64_t batch = -1;
        int tiers = 0;
        State state = State::free;
        std::exception_ptr failure;
    };

    void want();
    void want(Place& place, std::int64_t batch) const;
    std::int64_t steps_until(std::int64_t batch) const noexcept;
    Place* find(std::int64_t batch) noexcept;
    Place* place_for(std::int64_t steps) noexcept;

    SweepOrder order_;
    std::vector<Place> places_;
};

}  // namespace penstock::hmatrix
