// The default policy. It keeps a part of what is swept over again and again, where clock and FIFO keep nothing.
//
// A page comes into a first-in first-out probation part. At its end the page is thrown out, unless it was touched late:
// after `settled` other pages had come behind it. Early touches say nothing, because the touches of one visit come
// close together from several warps. One page in `kAdmission` goes to the main part at once. The main part is a clock.
// Pages in flight stay in the probation part, so at most so many are loaded at a time as it has frames, and they do not
// drive the hand of the main part round. If they did, the cache would hit nothing, as a single clock with bimodal
// insertion does. On a sweep over N pages a cache of C hits (C - probation) / N.
#pragma once

#include "penstock/ondevice/cache/replacement.hpp"

namespace penstock::ondevice {

struct SweepResistant {
    static constexpr u32 kAdmission = 32;
    // With the advice `random`, pages earn their place by late touches: there is no sweep to keep a part of.
    static constexpr u32 kRandomAdmission = 128;

    template <class P>
    static PENSTOCK_ONDEVICE u32 touched(const Pool<P>& pool, u32 index, u32 state) {
        if (!(state & kProbation)) return state | kReferenced;
        if (state & kReferenced) return state;
        const u32 came = P::template load<Scope::device, Order::relaxed>(&pool.frame(index).policy);
        const u32 since = hand(pool) - came;
        return since >= settled(pool.probation) ? state | kReferenced : state;
    }

    template <class P>
    static PENSTOCK_ONDEVICE void loaded(const Pool<P>& pool, u32 index) {
        P::template store<Scope::device, Order::relaxed>(&pool.frame(index).policy, hand(pool));
    }

    template <class P>
    static PENSTOCK_ONDEVICE Victim take(const Pool<P>& pool, const Miss& miss) {
        const Advice advice = pool.advice(miss.key);
        if (!miss.again && advice != Advice::once && admitted(pool, advice)) {
            const Victim victim = from_main(pool, kGlance, advice == Advice::sweep ? miss.key : kNoKey);
            if (usable(victim)) return victim;
        }
        const Victim victim = from_probation(pool);
        if (usable(victim)) return victim;
        // Pages that are on their way leave the probation part soon: it is better to wait than to drive out kept pages.
        return victim.kind == Victim::Kind::held ? from_main(pool, kScan, kNoKey) : victim;
    }

  private:
    template <class P>
    static PENSTOCK_ONDEVICE u32 hand(const Pool<P>& pool) {
        return P::template load<Scope::device, Order::relaxed>(&pool.shared->probation_hand);
    }
    static PENSTOCK_ONDEVICE u32 settled(u32 probation) { return probation - probation / 4; }
    static PENSTOCK_ONDEVICE bool usable(const Victim& victim) {
        return victim.kind == Victim::Kind::taken || victim.kind == Victim::Kind::dirty ||
               victim.kind == Victim::Kind::leaving;
    }
    // Whether the page goes to the main part at once. A caller asks this once a miss: one that waits asks for a victim
    // again and again, and would be admitted in the end.
    template <class P>
    static PENSTOCK_ONDEVICE bool admitted(const Pool<P>& pool, Advice advice) {
        const u32 draw = mixed(P::template add<Scope::device, Order::relaxed>(&pool.shared->draws, 1u));
        return draw % (advice == Advice::random ? kRandomAdmission : kAdmission) == 0;
    }
    static PENSTOCK_ONDEVICE u32 mixed(u32 value) {
        value = (value ^ value >> 16) * 0x7feb352du;
        value = (value ^ value >> 15) * 0x846ca68bu;
        return value ^ value >> 16;
    }

    // Takes a victim of the main part. Pages of the array of `sweeper`, which is swept over, do not displace each
    // other: those that came first stay.
    template <class P>
    static PENSTOCK_ONDEVICE Victim from_main(const Pool<P>& pool, u32 steps, u64 sweeper) {
        return pool.search(pool.main(), steps, [&](u32, u32 index, u32 state) {
            if (sweeper != kNoKey && array_of(pool.directory.key(index)) == array_of(sweeper)) return true;
            return Clock::second_chance(pool, index, state);
        });
    }

    template <class P>
    static PENSTOCK_ONDEVICE Victim from_probation(const Pool<P>& pool) {
        u32 place = 0;
        const Victim victim = pool.search(pool.trial(), kScan, [&](u32 slot, u32, u32) {
            place = slot;
            return false;
        });
        if (victim.kind != Victim::Kind::taken) return victim;
        if (!(victim.state & kReferenced) || pool.at(place) != victim.frame) return victim;
        return promoted(pool, place, victim);
    }

    // Moves the page to the main part, into the slot of a page there, which becomes the victim in its place.
    template <class P>
    static PENSTOCK_ONDEVICE Victim promoted(const Pool<P>& pool, u32 place, const Victim& page) {
        const u64 key = pool.directory.key(page.frame);
        const Advice advice = pool.advice(key);
        if (advice == Advice::once) return page;
        u32 room = 0;
        const bool sweeps = advice == Advice::sweep;
        const Victim loser = pool.search(pool.main(), sweeps ? kGlance : kScan, [&](u32 slot, u32 index, u32 state) {
            room = slot;
            if (sweeps && array_of(pool.directory.key(index)) == array_of(key)) return true;
            return Clock::second_chance(pool, index, state);
        });
        if (loser.kind != Victim::Kind::taken || pool.at(room) != loser.frame) {
            if (loser.kind == Victim::Kind::taken) FrameState<P>::change(pool.frame(loser.frame), kBusy, 0, 0);
            return page;
        }
        P::template store<Scope::device>(&pool.slots[place], loser.frame);
        P::template store<Scope::device>(&pool.slots[room], page.frame);
        FrameState<P>::change(pool.frame(loser.frame), kReferenced, kProbation, 0);
        FrameState<P>::change(pool.frame(page.frame), kBusy | kReferenced | kProbation, 0, 0);
        return loser;
    }
};

}  // namespace penstock::ondevice
