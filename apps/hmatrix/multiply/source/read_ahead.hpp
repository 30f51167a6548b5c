// Which batches lie in the few places that a source has for them, and which one to fetch next: as many ahead of the
// sweep as there are places, across its end too, in the order in which they are needed.
//
// It moves no bytes and waits for nobody: whoever owns the places calls it under a lock of its own. A place belongs to
// who fetches from start() to fetched(), and to who computes from take() to give_back().
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "hmatrix/multiply/source/source.hpp"

namespace penstock::hmatrix {

class ReadAhead {
  public:
    explicit ReadAhead(std::int64_t places = 0) : places_(static_cast<std::size_t>(places)) {}

    std::int64_t places() const noexcept { return static_cast<std::int64_t>(places_.size()); }
    int tiers() const noexcept { return sweep_.tiers; }

    // Frees what was taken in a sweep that an error ended.
    void begin(const Sweep& sweep);

    struct Fetch {
        std::int64_t place = -1;  // -1: nothing is wanted
        std::int64_t batch = -1;
        int tiers = 0;
    };
    Fetch start();
    void fetched(std::int64_t place, std::exception_ptr failure);

    // The place of the next batch of the sweep when it is there, or else -1: to be asked again when something was
    // fetched. Throws Error{internal} for another batch, and when the caller holds all places.
    std::int64_t ready(std::int64_t batch);
    // Rethrows the failure of the fetch; the batch is then wanted anew.
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
    std::int64_t upcoming(std::int64_t steps) const noexcept;
    std::int64_t steps_until(std::int64_t batch) const noexcept;
    Place* find(std::int64_t batch) noexcept;
    Place* place_for(std::int64_t steps) noexcept;

    Sweep sweep_;
    std::int64_t position_ = 0;
    std::vector<Place> places_;
};

}  // namespace penstock::hmatrix
