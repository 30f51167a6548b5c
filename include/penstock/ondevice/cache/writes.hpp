// How dirty pages go: written back while they stay in use for everyone, together with dirty pages beside them.
//
// Who writes a page back marks it as being written, which takes the dirty mark off before the page's bytes are read: a
// store after that makes it dirty again. A disk takes pages that lie side by side faster than pages on their own, so
// the lanes of a warp take the page's dirty neighbours with it, a lane each.
#pragma once

#include "penstock/ondevice/cache/asks.hpp"

namespace penstock::ondevice {

// Which dirty pages are written back with one beside them: those that nobody uses and that were not touched again, for
// a page that goes; all that nobody uses, where all are to be written.
enum class Neighbours : u8 { idle, all };

template <class P, class Store, class Policy>
struct PageWrites : PageAsks<P, Store, Policy> {
    using Asks = PageAsks<P, Store, Policy>;
    using State = FrameState<P>;
    using Asks::agreed;
    using Asks::agreed_late;
    using Asks::bytes_of;
    using Asks::drop;
    using Asks::pool;
    using Asks::store;
    using Asks::tell;
    using Asks::when_room;
    using Asks::page_bytes;

    // Writes the page back if it is dirty, and returns when what was dirty at the call has been put, by whomever. Dirty
    // neighbours of the page go with it, since a disk takes what lies together faster than pages on their own. busy,
    // with Neighbours::idle: others have been writing it for long, and the caller may do with another page.
    PENSTOCK_ONDEVICE_SLOW Status clean(Lanes group, u32 frame, u64 deadline, Neighbours which) const {
        const u32 leader = lowest(group);
        const u64 began = P::now_ns();
        How how{which, false, run_of(group) == 1};
        for (;;) {
            const u32 state = P::from(group, State::load(pool.frame(frame)), leader);
            // Busy, it is being overwritten, and not the page's yet.
            if (!(state & (kDirty | kWriting)) || state & kBusy) return Status::ok;
            if (!(state & kWriting)) {
                how.alone = agreed_late(group, began + kPatienceNs);
                const Status said = attempt(group, frame, deadline, how);
                if (said != Status::busy) return said;
                how.single |= how.alone;  // no room for it among others, so it waits for some by itself
            } else if (which == Neighbours::idle && agreed_late(group, began + kLeavingNs)) {
                return Status::busy;
            }
            if (agreed_late(group, deadline)) return Status::timed_out;
            P::pause(64);
        }
    }

    // For who waits for a page of the probation part that another writes back: writes pages that go next, if they are
    // dirty, so that more are on their way at a time than one caller's. What becomes of them is for who needs them.
    PENSTOCK_ONDEVICE_SLOW void clean_ahead(Lanes group, u64 deadline) const {
        const u32 leader = lowest(group);
        for (u32 tries = 0; tries < 4; ++tries) {
            u32 next = kNoFrame;
            if (P::lane() == leader) next = pool.next_to_go(run_of(group));
            next = P::from(group, next, leader);
            if (next == kNoFrame) return;
            if (attempt(group, next, deadline, {Neighbours::idle, false, false}) != Status::busy) return;
        }
    }

  private:
    // Pages that go together: lane after lane has the next one of an array, from a multiple of their number on.
    struct Together {
        u32 frame;  // the lane's
        u64 key;
        Lanes marked;  // lanes whose pages the caller has marked as being written
        Lanes own;     // of these the one with the page that the caller is here for
    };

    // How a page goes: with which neighbours; whether also where others write some of them; whether by itself.
    struct How {
        Neighbours which;
        bool alone;
        bool single;
    };

    static constexpr u64 kRunBytes = 1 << 20;
    static constexpr u64 kLeavingNs = 20'000'000;  // to wait for a page that others write, before another is looked for
    // How many, a power of two: no more than there are lanes.
    PENSTOCK_ONDEVICE u32 run_of(Lanes group) const {
        const u64 most = kRunBytes / page_bytes;
        u32 pages = 1;
        while (pages * 2 <= count(group) && pages * 2 <= most) pages *= 2;
        return pages;
    }

    // What became of the frame's page; busy: others have it, or there was no room.
    PENSTOCK_ONDEVICE_SLOW Status attempt(Lanes group, u32 frame, u64 deadline, const How& how) const {
        Together run{frame, kNoKey, 0, 0};
        if (how.single)
            mark_one(group, run);
        else
            mark_run(group, how, run);
        if (run.marked == 0) return Status::busy;
        const Status status = write(group, run, P::from(group, deadline, lowest(group)), how.single);
        return run.own == 0 ? Status::busy : agreed(group, status, lowest(run.own));
    }

    PENSTOCK_ONDEVICE bool mark(u32 frame, u32 state) const {
        return P::template swap_if<Scope::device, Order::acquire>(&pool.frame(frame).state, state,
                                                                  ((state & ~kDirty) | kWriting) + 1);
    }
    PENSTOCK_ONDEVICE void mark_one(Lanes group, Together& run) const {
        bool marked = false;
        if (P::lane() == lowest(group)) {
            const u32 state = State::load(pool.frame(run.frame));
            marked = (state & (kBusy | kDirty | kWriting)) == kDirty && mark(run.frame, state);
        }
        run.marked = P::ballot(group, marked);
        run.own = run.marked;
        if (run.marked != 0) run.key = pool.directory.key(run.frame);
        P::sync(group);
    }

    // The page of the caller's frame and its dirty neighbours, or none: who marks the first of them has all. Of several
    // who want to, those who come too late leave the others' runs whole, and wait, but not for ever: `alone`.
    PENSTOCK_ONDEVICE_SLOW void mark_run(Lanes group, const How& how, Together& run) const {
        const u32 own = run.frame, pages = run_of(group), place = rank<P>(group);
        const u64 key = P::from(group, pool.directory.key(own), lowest(group));
        run.key = (key & ~u64{pages - 1}) + place;
        const u32 spared = kReferences | (how.which == Neighbours::idle ? kReferenced : 0);
        u32 state = 0;
        if (key != kNoKey && place < pages) {
            if (run.key != key) run.frame = pool.directory.glance(run.key);
            if (run.frame != kNoFrame && pool.directory.key(run.frame) == run.key)
                state = State::load(pool.frame(run.frame));
        }
        if (!how.alone && P::ballot(group, state & kWriting) != 0) return;
        // One that failed before would fail with each of its neighbours: it goes as the caller's own alone.
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
    // The frame may have become another page's since it was found: that one is left as it was.
    PENSTOCK_ONDEVICE bool mark_page(const Together& run, u32 state) const {
        if (!mark(run.frame, state)) return false;
        if (pool.directory.key(run.frame) == run.key) return true;
        State::change(pool.frame(run.frame), kWriting, kDirty, ~0u);
        return false;
    }

    // Writes the pages that the caller has marked, its own first; what became of each lane's. What fails stays dirty,
    // and so does what the store has no room for now: busy. Who `waits` for room has no other pages marked, which would
    // have to wait with it.
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
            const auto ask = [&] { return store.prepare(group, key, bytes_of(frame), deadline, given); };
            const Status said = waits ? when_room(*this, {group, deadline, frame}, ask) : agreed(group, ask());
            given = P::from(group, given, lowest(group));
            if (P::lane() == turn) {
                status = said;
                ticket = given;
            }
            if (said == Status::busy) break;
            if (said == Status::ok) ready |= Lanes{1} << turn;
        }
        P::sync(group);
        if (ready >> P::lane() & 1) status = store.send(run.key, ticket, deadline);
        if (run.marked >> P::lane() & 1) written(run.frame, status);
        P::sync(group);
        return status;
    }
    PENSTOCK_ONDEVICE void written(u32 frame, Status status) const {
        const u32 off = kWriting | (status == Status::ok ? kFailed : 0);
        const u32 on = status == Status::ok ? 0 : status == Status::busy ? kDirty : kDirty | kFailed;
        State::template change<Order::release>(pool.frame(frame), off, on, ~0u);
        if (status == Status::ok)
            tell(&Tally::write_backs);
        else if (status != Status::busy)
            tell(&Tally::failures);
    }
};

}  // namespace penstock::ondevice
