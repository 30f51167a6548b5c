// Which batches are fetched, when, and in what order, step by step.
#include "hmatrix/multiply/source/read_ahead.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

using Batches = std::vector<std::int64_t>;

// Fetches everything that is wanted, and returns the batches in the order of fetching.
Batches fetch_all(ReadAhead& ahead) {
    Batches fetched;
    for (ReadAhead::Fetch next = ahead.start(); next.place >= 0; next = ahead.start()) {
        EXPECT_EQ(next.tiers, ahead.tiers());
        fetched.push_back(next.batch);
        ahead.fetched(next.place, nullptr);
    }
    return fetched;
}

std::int64_t take(ReadAhead& ahead, std::int64_t batch) {
    const std::int64_t place = ahead.ready(batch);
    EXPECT_GE(place, 0) << "batch " << batch;
    if (place >= 0) ahead.take(place);
    return place;
}

TEST(ReadAhead, all_places_but_those_held_are_ahead_of_the_sweep) {
    const Batches order{5, 3, 8, 1, 0, 7, 2};
    for (std::int64_t places = 2; places <= 4; ++places) {
        ReadAhead ahead(places);
        ahead.begin({order, {}, 1});
        EXPECT_EQ(fetch_all(ahead), Batches(order.begin(), order.begin() + places));
        take(ahead, 5);
        EXPECT_EQ(fetch_all(ahead), Batches{}) << "one is held and the others are ahead";
        take(ahead, 3);
        EXPECT_EQ(fetch_all(ahead), Batches{});
        ahead.give_back(5);
        EXPECT_EQ(fetch_all(ahead), Batches{order[places]});
        ahead.give_back(3);
        EXPECT_EQ(fetch_all(ahead), Batches{order[places + 1]});
    }
}

TEST(ReadAhead, what_is_needed_first_is_fetched_first_whatever_place_it_has) {
    Batches order{4, 0, 6, 2, 7, 1, 5, 3};
    const Batches back(order.rbegin(), order.rend());
    for (std::int64_t places = 2; places <= 4; ++places) {
        for (const bool late : {false, true}) {  // given back after the next batch was taken, as a GPU product does
            ReadAhead ahead(places);
            Batches fetched, wanted = order;
            std::int64_t held = -1;
            for (const bool forward : {true, false}) {
                ahead.begin(forward ? Sweep{order, back, 2} : Sweep{back, {}, 2});
                for (const std::int64_t batch : forward ? order : back) {
                    // One fetch at a time, because places become free while other batches are wanted.
                    for (std::int64_t i = 0; i < places && ahead.ready(batch) < 0; ++i) {
                        const ReadAhead::Fetch next = ahead.start();
                        fetched.push_back(next.batch);
                        ahead.fetched(next.place, nullptr);
                    }
                    take(ahead, batch);
                    if (held >= 0) ahead.give_back(held);
                    held = batch;
                    if (!late) ahead.give_back(std::exchange(held, -1));
                }
                if (held >= 0) ahead.give_back(std::exchange(held, -1));
            }
            EXPECT_EQ(Batches(fetched.begin(), fetched.begin() + 8), order);
            EXPECT_EQ(Batches(fetched.end() - 7, fetched.end()), Batches(back.begin() + 1, back.end()));
        }
    }
}

TEST(ReadAhead, the_end_of_a_sweep_does_not_stop_it) {
    const Batches order{0, 1, 2, 3, 4}, next{9, 8, 7};
    ReadAhead ahead(4);
    ahead.begin({order, next, 1});
    for (const std::int64_t batch : order) {
        fetch_all(ahead);
        take(ahead, batch);
        ahead.give_back(batch);
    }
    fetch_all(ahead);
    ahead.begin({next, {}, 1});
    EXPECT_EQ(fetch_all(ahead), Batches{}) << "all three are there";
    for (const std::int64_t batch : next) take(ahead, batch);
}

TEST(ReadAhead, fewer_tiers_than_the_sweep_wants_are_fetched_again) {
    const Batches order{0, 1, 2};
    ReadAhead ahead(2);
    ahead.begin({order, order, 1});
    const ReadAhead::Fetch begun = ahead.start();
    EXPECT_EQ(begun.tiers, 1);
    ahead.begin({order, order, 3});  // while the fetch of fewer tiers is under way
    EXPECT_LT(ahead.ready(0), 0);
    ahead.fetched(begun.place, nullptr);
    EXPECT_LT(ahead.ready(0), 0) << "one tier of three";
    EXPECT_EQ(fetch_all(ahead), (Batches{0, 1}));
    take(ahead, 0);
    ahead.begin({order, order, 2});
    EXPECT_EQ(fetch_all(ahead), Batches{0}) << "the other has more tiers than are wanted";
    take(ahead, 0);
    take(ahead, 1);
}

TEST(ReadAhead, a_sweep_that_nobody_announced_waits_for_what_is_under_way) {
    const Batches order{0, 1, 2, 3}, other{7, 6, 5, 4};
    ReadAhead ahead(2);
    ahead.begin({order, order, 1});
    const ReadAhead::Fetch stale = ahead.start();
    ahead.begin({other, other, 1});
    EXPECT_EQ(fetch_all(ahead), Batches{7});
    take(ahead, 7);
    EXPECT_LT(ahead.ready(6), 0) << "one place is held, the other is being filled";
    ahead.fetched(stale.place, nullptr);
    EXPECT_LT(ahead.ready(6), 0);
    EXPECT_EQ(fetch_all(ahead), Batches{6});
    take(ahead, 6);
    EXPECT_THROW(ahead.ready(5), Error) << "both are held";
    EXPECT_THROW(ahead.ready(6), Error) << "it is taken";
    ahead.give_back(6);
    EXPECT_EQ(fetch_all(ahead), Batches{5});
    EXPECT_THROW(ahead.ready(4), Error) << "not the next one";
}

TEST(ReadAhead, a_failure_is_told_by_the_batch_it_belongs_to_and_tried_again) {
    const Batches order{0, 1, 2};
    ReadAhead ahead(3);
    ahead.begin({order, {}, 1});
    for (const bool bad : {false, true, false}) {
        const std::int64_t place = ahead.start().place;
        ahead.fetched(place, bad ? std::make_exception_ptr(std::runtime_error("bad disk")) : nullptr);
    }
    take(ahead, 0);
    const std::int64_t place = ahead.ready(1);
    ASSERT_GE(place, 0);
    EXPECT_THROW(ahead.take(place), std::runtime_error);
    EXPECT_LT(ahead.ready(1), 0);
    EXPECT_EQ(fetch_all(ahead), Batches{1});
    take(ahead, 1);
    take(ahead, 2);
}

// Fetches and products in random interleavings: no place ever serves two batches, and every sweep ends.
class Interleaved {
  public:
    explicit Interleaved(unsigned seed) : random_(seed), ahead_(2 + random_() % 3) {}

    void sweep(const Sweep& sweep) {
        ahead_.begin(sweep);
        std::size_t taken = 0;
        while (taken < sweep.order.size()) {
            switch (random_() % 4) {
                case 0: start(); break;
                case 1: finish(); break;
                case 2: taken += take(sweep.order[taken]) ? 1 : 0; break;
                default: give_back();
            }
        }
        while (!held_.empty()) give_back();
    }
    unsigned draw() { return static_cast<unsigned>(random_()); }

  private:
    void start() {  // there is one server, so at most one fetch
        if (fetch_.place < 0) fetch_ = ahead_.start();
        for (const auto& [batch, place] : held_) ASSERT_NE(place, fetch_.place) << batch;
    }
    void finish() {
        if (fetch_.place < 0) return;
        holds_[fetch_.place] = {fetch_.batch, fetch_.tiers};
        ahead_.fetched(std::exchange(fetch_.place, -1), nullptr);
    }
    bool take(std::int64_t batch) {
        if (static_cast<std::int64_t>(held_.size()) == ahead_.places()) return false;
        const std::int64_t place = ahead_.ready(batch);
        if (place < 0) return false;
        EXPECT_EQ(holds_[place].first, batch);
        EXPECT_GE(holds_[place].second, ahead_.tiers());
        ahead_.take(place);
        held_[batch] = place;
        return true;
    }
    void give_back() {
        if (held_.empty()) return;
        ahead_.give_back(held_.begin()->first);
        held_.erase(held_.begin());
    }

    std::mt19937 random_;
    ReadAhead ahead_;
    ReadAhead::Fetch fetch_;
    std::map<std::int64_t, std::int64_t> held_;                   // batch -> place
    std::map<std::int64_t, std::pair<std::int64_t, int>> holds_;  // place -> batch, tiers
};

TEST(ReadAhead, sweeps_in_any_interleaving_end_with_what_was_fetched) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        Interleaved run(seed);
        Batches order(1 + run.draw() % 9), next;
        std::iota(order.begin(), order.end(), std::int64_t{0});
        for (int sweep = 0; sweep < 5; ++sweep) {
            if (run.draw() % 2 == 0) next = order;
            run.sweep({order, next, 1 + static_cast<int>(run.draw() % 3)});
            std::shuffle(order.begin(), order.end(), std::mt19937(seed));
        }
    }
}

TEST(SweepOrder, steps_until_a_batch_lead_to_it_and_to_no_earlier_one) {
    const Batches now{5, 3, 8, 1}, next{1, 9, 5};
    SweepOrder order;
    order.begin({now, next, 2});
    for (std::size_t taken = 0; taken <= now.size(); ++taken, order.advance()) {
        for (std::int64_t batch = 0; batch < 12; ++batch) {
            const std::int64_t steps = order.steps_until(batch);
            for (std::int64_t step = 0; step < (steps < 0 ? 12 : steps); ++step) EXPECT_NE(order.upcoming(step), batch);
            if (steps >= 0) {
                EXPECT_EQ(order.upcoming(steps), batch);
            }
        }
    }
    EXPECT_EQ(order.upcoming(3), -1) << "nothing is announced after the next sweep";
}

}  // namespace
}  // namespace penstock::hmatrix
