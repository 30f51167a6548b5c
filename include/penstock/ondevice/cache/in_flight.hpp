// Loads under way, and how callers that wait for something finish them.
//
// No caller owns a load in flight. Its frame is busy, with the store's ticket in `note`. A caller that waits for the
// page, or for room in the store, takes the load over, one caller at a time. It polls the store, and then either ends
// the load or puts it back in flight.
#pragma once

#include "penstock/ondevice/cache/hits.hpp"
#include "penstock/ondevice/store.hpp"

namespace penstock::ondevice {

// How long a caller polls a load before others may, and how long it waits while others write back pages beside its own.
inline constexpr u64 kPatienceNs = 100'000;

template <class P, class Store, class Policy>
struct LoadsInFlight {
    using State = FrameState<P>;

    PageHits<P, Policy> hits;
    Store store;

    // Polls the load for up to `patience_ns`, unless another caller polls it at this moment. Whether the load ended.
    // The exchange that takes the load over acquires the ticket. Pairs with: the release that sets kInFlight
    // (PageMiss::bring, finish).
    PENSTOCK_ONDEVICE_SLOW bool try_poll(Lanes group, u32 frame, u64 patience_ns = 0) const {
        const u32 leader = lowest(group);
        u32 mine = 0;
        Frame& at = hits.pool.frame(frame);
        if (P::lane() == leader) {
            u32 state = State::load(at);
            mine = state & kInFlight &&
                   P::template swap_if<Scope::device, Order::acquire>(&at.state, state, (state & ~kInFlight) + 1);
        }
        return P::from(group, mine, leader) != 0 && poll(*this, group, frame, patience_ns) != Status::pending;
    }

    // Polls a load that is the caller's alone to poll, and returns how it ended, or pending. Requires: the caller holds
    // a reference for polling, which this gives back. `in_memory` is this description in memory, for a caller that
    // calls with a copy in registers.
    PENSTOCK_ONDEVICE Status poll(const LoadsInFlight& in_memory, Lanes group, u32 frame, u64 patience_ns) const {
        const u32 leader = lowest(group);
        const Frame& at = hits.pool.frame(frame);
        // Both loads under way at once: the first use of one waits for it.
        const u32 note = P::template load<Scope::device, Order::relaxed>(&at.note);
        const u64 held = P::template load<Scope::device, Order::relaxed>(&at.key);
        const u32 ticket = P::from(group, note, leader);
        const u64 key = P::from(group, held, leader), began = P::now_ns();
        Status status = Status::pending;
        P::sync(group);  // the leader took the frame; from here on all lanes may write to it
        for (;;) {
            status = store.test(group, ticket, key, hits.bytes_of(frame));
            const u64 waited = P::from(group, P::now_ns() - began, leader);
            if (status != Status::pending || waited >= patience_ns) break;
            P::pause(between_polls(waited));
        }
        P::sync(group);
        if (P::lane() == leader) finish(in_memory, frame, status);
        return agreed<P>(group, status);
    }

    // A caller that waits for room in the store, and the frame behind which it looks for loads to poll.
    struct Waiting {
        Lanes group;
        u64 deadline;
        u32 frame;
    };
    // What `ask` returns once the store has room, or timed_out. Loads that no caller polls may hold all of the store's
    // room, so the caller polls loads while it waits.
    template <class Ask>
    PENSTOCK_ONDEVICE static Status when_room(const LoadsInFlight& in_memory, Waiting waiting, const Ask& ask) {
        for (;;) {
            const Status status = agreed<P>(waiting.group, ask());
            if (status != Status::busy) return status;
            if (agreed_late<P>(waiting.group, waiting.deadline)) return Status::timed_out;
            waiting.frame = in_memory.help(waiting.group, waiting.frame);
        }
    }

    // Ends the load of the caller's busy frame as a failure: newcomers no longer find the frame, and the callers that
    // wait see the status.
    PENSTOCK_ONDEVICE_SLOW void fail(u32 frame, Status status) const {
        hits.pool.directory.unlink(frame);
        P::template store<Scope::device, Order::relaxed>(&hits.pool.frame(frame).note, static_cast<u32>(status));
        State::template change<Order::release>(hits.pool.frame(frame), kBusy, kFailed, 0);
        hits.count_one(&Tally::failures);
    }

    // Adds references to a page in the state `as`: valid, or busy while it is being loaded.
    PENSTOCK_ONDEVICE bool joined(u32 frame, u32 references, u32 as) const {
        Frame& at = hits.pool.frame(frame);
        u32 state = State::load(at);
        while ((state & (kValid | kBusy)) == as && (state & kReferences) + references <= kReferences) {
            const u32 touched = as == kValid ? Policy::touched(hits.pool, frame, state) : state;
            if (P::template swap_if<Scope::device, Order::acquire>(&at.state, state, touched + references)) return true;
        }
        return false;
    }

    // Takes the caller's claimed frame out of its chain.
    PENSTOCK_ONDEVICE void evict(u32 frame) const {
        hits.pool.directory.unlink(frame);
        P::template clear_bits<Scope::device, Order::relaxed>(&hits.pool.frame(frame).state, kOfPage);
        hits.count_one(&Tally::evictions);
    }

  private:
    // Records what the store said of the load that the caller alone polled.
    PENSTOCK_ONDEVICE void finish(const LoadsInFlight& in_memory, u32 frame, Status status) const {
        Frame& at = hits.pool.frame(frame);
        if (status == Status::pending) {
            State::template change<Order::release>(at, 0, kInFlight, ~0u);
        } else if (status == Status::ok) {
            P::template store<Scope::device, Order::relaxed>(&at.note, 0u);
            // The state has kBusy and not kValid: one addition clears the one, sets the other and drops the reference.
            P::template add<Scope::device, Order::release>(&at.state, kValid - kBusy - 1);
        } else {
            in_memory.fail(frame, status);
            hits.drop(frame, 1);
        }
    }

    static constexpr u32 kHelpScan = 32;  // frames that one try looks at

    // Polls the next load in flight behind `frame`, and returns its frame.
    PENSTOCK_ONDEVICE_SLOW u32 help(Lanes group, u32 frame) const {
        const Pool<P>& pool = hits.pool;
        u32 in_flight = 0;
        for (u32 step = 0; P::lane() == lowest(group) && in_flight == 0 && step < kHelpScan; ++step) {
            frame = frame + 1 < pool.frames() ? frame + 1 : 0;
            in_flight = State::load(pool.frame(frame)) & kInFlight;
        }
        frame = P::from(group, frame, lowest(group));
        if (P::from(group, in_flight, lowest(group)) == 0 || !try_poll(group, frame)) P::pause(64);
        return frame;
    }
};

}  // namespace penstock::ondevice
