// How dirty pages are written back, while every caller may go on using them, and together with dirty pages beside them.
//
// A caller marks the page as being written before the store reads its bytes. The mark takes the dirty bit off, so a
// store to the page after that makes it dirty again. A disk takes pages that lie side by side faster than single ones,
// so the lanes of a warp take the page's dirty neighbours with it, one each.
#pragma once

#include "penstock/ondevice/cache/in_flight.hpp"

namespace penstock::ondevice {

// Which dirty neighbours are written back with a page. idle: those without references that were not touched again, with
// a page whose frame is wanted. all: those without references, where every page is to be written.
enum class Neighbours : u8 { idle, all };

template <class P, class Store, class Policy>
struct PageWrites {
    using State = FrameState<P>;

    LoadsInFlight<P, Store, Policy> in_flight;

    PENSTOCK_ONDEVICE const Pool<P>& pool() const { return in_flight.hits.pool; }

    // Writes the page back if it is dirty. Ensures: with ok, every byte that was dirty at the call is written, by this
    // caller or another. Dirty neighbours of the page go with it. busy, with Neighbours::idle alone: another caller has
    // been writing the page for kLeavingNs, so this one should look for another page.
    PENSTOCK_ONDEVICE_SLOW Status clean(Lanes group, u32 frame, u64 deadline, Neighbours which) const {
        const u32 leader = lowest(group);
        const u64 began = P::now_ns();
        How how{which, false, run_of(group) == 1};
        for (;;) {
            const u32 state = P::from(group, State::load(pool().frame(frame)), leader);
            // A busy page is being overwritten: its bytes are not complete yet.
            if (!(state & (kDirty | kWriting)) || state & kBusy) return Status::ok;
            if (!(state & kWriting)) {
                how.alone = agreed_late<P>(group, began + kPatienceNs);
                const Status said = attempt(group, frame, deadline, how);
                if (said != Status::busy) return said;
                how.single |= how.alone;  // without room among others, the page next waits by itself
            } else if (which == Neighbours::idle && agreed_late<P>(group, began + kLeavingNs)) {
                return Status::busy;
            }
            if (agreed_late<P>(group, deadline)) return Status::timed_out;
            P::pause(64);
        }
    }

    // Writes back the dirty pages whose frames are wanted next, one try each. A caller does this before it waits for a
    // page of the probation part that another caller writes back, so that pages of more than one are on their way.
    // The pages' states have the outcome, for the callers that next use them.
    PENSTOCK_ONDEVICE_SLOW void clean_ahead(Lanes group, u64 deadline) const {
        const u32 leader = lowest(group);
        for (u32 tries = 0; tries < 4; ++tries) {
            u32 next = kNoFrame;
            if (P::lane() == leader) next = pool().next_to_go(run_of(group));
            next = P::from(group, next, leader);
            if (next == kNoFrame) return;
            if (attempt(group, next, deadline, {Neighbours::idle, false, false}) != Status::busy) return;
        }
    }

  private:
    // Pages that go together: lane after lane has the next page of an array, from a multiple of their number on.
    struct Together {
        u32 frame;  // of the lane's page
        u64 key;
        Lanes marked;  // lanes whose pages the caller has marked as being written
        Lanes own;     // the one of these lanes that has the page the caller is here for
    };

    // How a page goes: with which neighbours; whether also while others write some of them; whether without any.
    struct How {
        Neighbours which;
        bool alone;
        bool single;
    };

    static constexpr u64 kRunBytes = 1 << 20;
    static constexpr u64 kLeavingNs = 20'000'000;  // how long to wait for a page that others write

    // How many pages go together: a power of two, at most one a lane.
    PENSTOCK_ONDEVICE u32 run_of(Lanes group) const {
        const u64 most = kRunBytes / in_flight.hits.page_bytes;
        u32 pages = 1;
        while (pages * 2 <= count(group) && pages * 2 <= most) pages *= 2;
        return pages;
    }

    // Tries to write the frame's page, and returns its status. busy: others write it, or the store had no room.
    PENSTOCK_ONDEVICE_SLOW Status attempt(Lanes group, u32 frame, u64 deadline, const How& how) const {
        Together run{frame, kNoKey, 0, 0};
        if (how.single)
            mark_one(group, run);
        else
            mark_run(group, how, run);
        if (run.marked == 0) return Status::busy;
        const Status status = write(group, run, P::from(group, deadline, lowest(group)), how.single);
        return run.own == 0 ? Status::busy : agreed<P>(group, status, lowest(run.own));
    }

    // Marks the page as being written, adds a reference and takes the dirty bit off. Pairs with: the releasing exchange
    // that set it (PageHits::release, PageLoads::filled), so that the store sees the bytes.
    PENSTOCK_ONDEVICE bool mark(u32 frame, u32 state) const {
        return P::template swap_if<Scope::device, Order::acquire>(&pool().frame(frame).state, state,
                                                                  ((state & ~kDirty) | kWriting) + 1);
    }
    PENSTOCK_ONDEVICE void mark_one(Lanes group, Together& run) const {
        bool marked = false;
        if (P::lane() == lowest(group)) {
            const u32 state = State::load(pool().frame(run.frame));
            marked = (state & (kBusy | kDirty | kWriting)) == kDirty && mark(run.frame, state);
        }
        run.marked = P::ballot(group, marked);
        run.own = run.marked;
        if (run.marked != 0) run.key = pool().directory.key(run.frame);
        P::sync(group);
    }

    // Marks the page of the caller's frame and its dirty neighbours, or none. The caller that marks the first of them
    // may mark all. A caller that comes second marks none, so that the first one's run stays whole. It waits for
    // kPatienceNs, and then marks what it can get: `alone`.
    PENSTOCK_ONDEVICE_SLOW void mark_run(Lanes group, const How& how, Together& run) const {
        const u32 own = run.frame, pages = run_of(group), place = rank<P>(group);
        const u64 key = P::from(group, pool().directory.key(own), lowest(group));
        run.key = (key & ~u64{pages - 1}) + place;
        const u32 spared = kReferences | (how.which == Neighbours::idle ? kReferenced : 0);
        u32 state = 0;
        if (key != kNoKey && place < pages) {
            if (run.key != key) run.frame = pool().directory.glance(run.key);
            if (run.frame != kNoFrame && pool().directory.key(run.frame) == run.key)
                state = State::load(pool().frame(run.frame));
        }
        if (!how.alone && P::ballot(group, state & kWriting) != 0) return;
        // A page that failed before would fail again with each neighbour's write: only its own caller writes it.
        const bool goes = (state & (kValid | kBusy | kDirty | kWriting)) == (kValid | kDirty) &&
                          (run.frame == own || !(state & (spared | kFailed)));
        const Lanes all = P::ballot(group, goes);
        if (all == 0) return;
        const u32 first = lowest(all);
        bool marked = P::lane() == first && mark_page(run, state);
        if (!P::from(group, static_cast<u32>(marked), first)) return;
        if (goes && P::lane() != first) marked = mark_page(run, state);
        run.marked = P::ballot(group, marked);
        run.own = P::ballot(group, marked && run.frame == own);
        P::sync(group);
    }
    // Marks the lane's page, unless its frame went to another page since the lane found it: then the mark is undone.
    PENSTOCK_ONDEVICE bool mark_page(const Together& run, u32 state) const {
        if (!mark(run.frame, state)) return false;
        if (pool().directory.key(run.frame) == run.key) return true;
        State::change(pool().frame(run.frame), kWriting, kDirty, ~0u);
        return false;
    }

    // Writes the pages that the caller has marked, its own first, and returns the status of each lane's page. A page
    // that fails stays dirty, and so does one that the store has no room for: busy. `waits`: the caller waits for that
    // room. Requires: with `waits`, one page alone is marked, since others would have to wait with it.
    PENSTOCK_ONDEVICE_SLOW Status write(Lanes group, const Together& run, u64 deadline, bool waits) const {
        Status status = Status::busy;
        u32 ticket = 0;
        Lanes ready = 0;
        for (Lanes left = run.marked; left != 0;) {
            const u32 turn = lowest(left & run.own ? run.own : left);
            left &= ~(Lanes{1} << turn);
            const u64 key = P::from(group, run.key, turn);
            const u32 frame = P::from(group, run.frame, turn);
            u32 given = 0;
            const auto ask = [&] {
                return in_flight.store.prepare(group, key, in_flight.hits.bytes_of(frame), deadline, given);
            };
            const Status said = waits ? in_flight.when_room(in_flight, {group, deadline, frame}, ask)
                                      : agreed<P>(group, ask());
            given = P::from(group, given, lowest(group));
            if (P::lane() == turn) {
                status = said;
                ticket = given;
            }
            if (said == Status::busy) break;
            if (said == Status::ok) ready |= Lanes{1} << turn;
        }
        P::sync(group);
        if (ready >> P::lane() & 1) status = in_flight.store.send(run.key, ticket, deadline);
        if (run.marked >> P::lane() & 1) written(run.frame, status);
        P::sync(group);
        return status;
    }
    PENSTOCK_ONDEVICE void written(u32 frame, Status status) const {
        const u32 off = kWriting | (status == Status::ok ? kFailed : 0);
        const u32 on = status == Status::ok ? 0 : status == Status::busy ? kDirty : kDirty | kFailed;
        State::template change<Order::release>(pool().frame(frame), off, on, ~0u);
        if (status == Status::ok)
            in_flight.hits.count_one(&Tally::write_backs);
        else if (status != Status::busy)
            in_flight.hits.count_one(&Tally::failures);
    }
};

}  // namespace penstock::ondevice
