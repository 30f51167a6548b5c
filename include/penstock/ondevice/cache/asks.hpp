// Loads under way, and how whoever waits for something finishes them: the part of the page cache's slow half that the
// others stand on.
//
// A load in flight is in nobody's hands. Its frame is busy, with its ticket in `note`; whoever waits for the page, or
// for room in the store, takes it over, one at a time, asks the store, and either ends it or gives it back.
#pragma once

#include "penstock/ondevice/cache/hits.hpp"
#include "penstock/ondevice/store.hpp"

namespace penstock::ondevice {

// While a caller asks after a load, before others may, and waits for others who write back pages beside its own.
inline constexpr u64 kPatienceNs = 100'000;

template <class P, class Store, class Policy>
struct PageAsks : Hits<P, Policy> {
    using State = FrameState<P>;
    using Quick = Hits<P, Policy>;
    using Quick::bytes_of;
    using Quick::drop;
    using Quick::pool;
    using Quick::tell;

    Store store;

    // Asks after a load that nobody else asks after at this moment, for up to `patience_ns`. Whether it ended.
    PENSTOCK_ONDEVICE_SLOW bool drive(Lanes group, u32 frame, u64 patience_ns = 0) const {
        const u32 leader = lowest(group);
        u32 mine = 0;
        Frame& at = pool.frame(frame);
        if (P::lane() == leader) {
            u32 state = State::load(at);
            mine = state & kInFlight &&
                   P::template swap_if<Scope::device, Order::acquire>(&at.state, state, (state & ~kInFlight) + 1);
        }
        return P::from(group, mine, leader) != 0 && ask(*this, group, frame, patience_ns) != Status::pending;
    }

    // The same of a load that is the caller's to ask after, with a reference for that, which it gives back: how it
    // ended, or pending. `home`: the cache's description in memory, for a caller with a copy of it in registers.
    PENSTOCK_ONDEVICE Status ask(const PageAsks& home, Lanes group, u32 frame, u64 patience_ns) const {
        const u32 leader = lowest(group);
        const Frame& at = pool.frame(frame);
        // Both loads under way at once: the first use of one waits for it.
        const u32 note = P::template load<Scope::device, Order::relaxed>(&at.note);
        const u64 held = P::template load<Scope::device, Order::relaxed>(&at.key);
        const u32 ticket = P::from(group, note, leader);
        const u64 key = P::from(group, held, leader), began = P::now_ns();
        Status status = Status::pending;
        P::sync(group);  // the frame is all lanes' to write to, of whom the leader has it
        for (;;) {
            status = store.test(group, ticket, key, bytes_of(frame));
            const u64 waited = P::from(group, P::now_ns() - began, leader);
            if (status != Status::pending || waited >= patience_ns) break;
            P::pause(between_polls(waited));
        }
        P::sync(group);
        if (P::lane() == leader) driven(home, frame, status);
        return agreed(group, status);
    }

    // What `ask` says when the store has room, or timed_out. Loads that nobody asks after may hold all of its room, so
    // who waits for some asks after loads, from `frame` on.
    struct Waiting {
        Lanes group;
        u64 deadline;
        u32 frame;
    };
    template <class Ask>
    PENSTOCK_ONDEVICE static Status when_room(const PageAsks& home, Waiting waiting, const Ask& ask) {
        for (;;) {
            const Status status = agreed(waiting.group, ask());
            if (status != Status::busy) return status;
            if (agreed_late(waiting.group, waiting.deadline)) return Status::timed_out;
            waiting.frame = home.help(waiting.group, waiting.frame);
        }
    }

    // The load of the caller's busy frame has failed: newcomers no longer find it, those who wait see the status.
    PENSTOCK_ONDEVICE_SLOW void fail(u32 frame, Status status) const {
        pool.directory.unlink(frame);
        P::template store<Scope::device, Order::relaxed>(&pool.frame(frame).note, static_cast<u32>(status));
        State::template change<Order::release>(pool.frame(frame), kBusy, kFailed, 0);
        tell(&Tally::failures);
    }

    // Adds references to a page in the state `as`: valid, or busy while it is being loaded.
    PENSTOCK_ONDEVICE bool joined(u32 frame, u32 references, u32 as) const {
        Frame& at = pool.frame(frame);
        u32 state = State::load(at);
        while ((state & (kValid | kBusy)) == as && (state & kReferences) + references <= kReferences) {
            const u32 touched = as == kValid ? Policy::touched(pool, frame, state) : state;
            if (P::template swap_if<Scope::device, Order::acquire>(&at.state, state, touched + references)) return true;
        }
        return false;
    }

    // The caller's claimed frame leaves its chain.
    PENSTOCK_ONDEVICE void evict(u32 frame) const {
        pool.directory.unlink(frame);
        P::template clear_bits<Scope::device, Order::relaxed>(&pool.frame(frame).state, kOfPage);
        tell(&Tally::evictions);
    }

    static PENSTOCK_ONDEVICE Status agreed(Lanes group, Status status, u32 with) {
        return static_cast<Status>(P::from(group, static_cast<int>(status), with));
    }
    static PENSTOCK_ONDEVICE Status agreed(Lanes group, Status status) {
        return agreed(group, status, lowest(group));
    }
    static PENSTOCK_ONDEVICE bool agreed_late(Lanes group, u64 deadline) {
        return P::from(group, static_cast<u32>(P::now_ns() >= deadline), lowest(group)) != 0;
    }

  private:
    // What the caller, who alone asked after the load of this frame, was told.
    PENSTOCK_ONDEVICE void driven(const PageAsks& home, u32 frame, Status status) const {
        Frame& at = pool.frame(frame);
        if (status == Status::pending) {
            State::template change<Order::release>(at, 0, kInFlight, ~0u);
        } else if (status == Status::ok) {
            P::template store<Scope::device, Order::relaxed>(&at.note, 0u);
            // Busy and not valid, as it is: one addition takes off the one bit and the reference, and sets the other.
            P::template add<Scope::device, Order::release>(&at.state, kValid - kBusy - 1);
        } else {
            home.fail(frame, status);
            drop(frame, 1);
        }
    }

    static constexpr u32 kHelpScan = 32;  // frames that one try looks at

    // Asks after the next load in flight behind `frame`; where that was.
    PENSTOCK_ONDEVICE_SLOW u32 help(Lanes group, u32 frame) const {
        u32 in_flight = 0;
        for (u32 step = 0; P::lane() == lowest(group) && in_flight == 0 && step < kHelpScan; ++step) {
            frame = frame + 1 < pool.frames() ? frame + 1 : 0;
            in_flight = State::load(pool.frame(frame)) & kInFlight;
        }
        frame = P::from(group, frame, lowest(group));
        if (P::from(group, in_flight, lowest(group)) == 0 || !drive(group, frame)) P::pause(64);
        return frame;
    }
};

}  // namespace penstock::ondevice
