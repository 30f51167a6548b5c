// Lanes of a warp that go apart and meet again in random sets, for tests. Each set exchanges words over and over, and
// every lane counts the words that do not come from its own set.
//
// On a GPU lanes of several sets may be at one place of the program together, or wait there for lanes that are still on
// their way. So an exchange has to go by the mask of each lane, and not by the lanes that happen to be there.
#pragma once

#include "penstock/ondevice/cache/frame.hpp"

namespace penstock::ondevice {

struct LaneGroupsTally {
    u32 exchanges;  // lanes that exchanged words, each round counted
    u32 company;    // how many of these were in a set with other lanes
    u32 wrong;
};

struct LaneGroupsPlan {
    u32 warps;
    u32 rounds;
    u32 spoilt;  // every so many rounds a lane sends a wrong word; 0: never
    u32* busy;   // a word for each warp, which the leaders of its sets contend for
    LaneGroupsTally* tally;
};

template <class P>
class LaneGroups {
  public:
    PENSTOCK_ONDEVICE LaneGroups(const LaneGroupsPlan& plan, u32 warp)
        : plan_(plan), busy_(plan.busy + warp), state_(warp * 32 + P::lane()) {}

    PENSTOCK_ONDEVICE void run() {
        for (u32 round = 1; round <= plan_.rounds; ++round) {
            wander(draw() % 8);
            exchange(plan_.spoilt != 0 && round % plan_.spoilt == 0);
        }
    }

  private:
    PENSTOCK_ONDEVICE void exchange(bool spoilt) {
        const u32 way = draw() % 4, wanted = draw() % 3;
        const Lanes all = P::active();
        wander(way);  // other lanes come to the same place meanwhile
        const Lanes group = P::same(all, wanted);
        const u32 leader = lowest(group);
        const u64 got = led(all, leader, word_of_set(all, wanted) ^ (spoilt ? 1 : 0));
        const Lanes first = P::ballot(all, wanted == 0);
        const bool mine = (group & ~all) == 0 && (group >> P::lane() & 1) != 0;
        const bool same = (first & ~all) == 0 && (wanted != 0 || first == group);
        add(&plan_.tally->exchanges);
        if (count(all) > 1) add(&plan_.tally->company);
        if (!mine || !same || got != word_of_set(all, wanted)) add(&plan_.tally->wrong);
    }

    static PENSTOCK_ONDEVICE u64 word_of_set(Lanes all, u32 wanted) { return u64{all} << 32 | wanted << 8; }

    // The leader's word, which it may wait for. It is a function by itself, as the functions that wait for a page are.
    PENSTOCK_ONDEVICE_SLOW u64 led(Lanes all, u32 leader, u64 word) const {
        u64 mine = 0;
        if (P::lane() == leader) {
            u32 seen = P::template load<Scope::device>(busy_);
            while (!P::template swap_if<Scope::device>(busy_, seen, seen + 1)) P::pause(32);
            mine = word;
        }
        const u64 got = P::from(all, mine, leader);
        P::sync(all);
        return got;
    }

    PENSTOCK_ONDEVICE_SLOW void wander(u32 steps) {
        for (; steps != 0; --steps) {
            if (draw() % 4 == 0)
                P::pause(64);
            else
                P::template load<Scope::device>(busy_);
        }
    }

    PENSTOCK_ONDEVICE u32 draw() {
        state_ = state_ * 747796405u + 2891336453u;
        const u32 mixed = ((state_ >> ((state_ >> 28) + 4)) ^ state_) * 277803737u;
        return mixed >> 22 ^ mixed;
    }
    static PENSTOCK_ONDEVICE void add(u32* counter) { P::template add<Scope::device>(counter, 1u); }

    const LaneGroupsPlan& plan_;
    u32* busy_;
    u32 state_;
};

}  // namespace penstock::ondevice
