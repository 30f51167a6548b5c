// How a page comes into the cache and how a dirty one goes: the slow half of the page cache.
//
// A page comes: a frame is taken (free, or a victim written back and unlinked), linked as busy with references under
// its bucket's lock, and loaded. A load in flight is in nobody's hands: whoever waits for the page, or for room,
// finishes it (`drive`), one at a time. Victims are written back while they stay in use for everyone, so a frame is
// claimed only for the few steps of unlinking it, and a page that is wanted again meanwhile simply stays.
#pragma once

#include "penstock/ondevice/hits.hpp"
#include "penstock/ondevice/store.hpp"

namespace penstock::ondevice {

struct Want {
    u32 references;
    u64 deadline;
    bool whole = false;   // the caller overwrites all of the page, which need not be read before
    bool prompt = false;  // where the store has no room now, the load fails at once
};

inline constexpr u64 kPatienceNs = 100'000;  // while a caller asks after a load, before others may

template <class P, class Store, class Policy>
struct PageLoads : Hits<P, Policy> {
    using State = FrameState<P>;
    using Quick = Hits<P, Policy>;
    using Quick::bytes_of;
    using Quick::drop;
    using Quick::pool;
    using Quick::tell;

    Store store;

    // Loads the page if it is not here, and waits for it. A load that ended at another caller's earlier deadline is
    // begun again. pending, only if the whole page is to be overwritten: the frame is the caller's until `filled`.
    PENSTOCK_ONDEVICE_SLOW Status load(Lanes group, u64 key, const Want& want, u32& frame) const {
        for (;;) {
            Status status = start(group, key, want, frame, true);
            if (status == Status::pending) return status;
            if (status == Status::ok) status = wait(group, want, frame);
            if (status != Status::timed_out || agreed_late(group, want.deadline)) return status;
        }
    }

    // Waits for a page that `start` said is here or comes, for which the caller has references.
    PENSTOCK_ONDEVICE_SLOW Status finish(Lanes group, u64 key, const Want& want, u32& frame) const {
        const Status status = wait(group, want, frame);
        if (status != Status::timed_out || agreed_late(group, want.deadline)) return status;
        return load(group, key, want, frame);
    }

    // The page that the caller overwrites is complete: others see it from now on.
    PENSTOCK_ONDEVICE void filled(Lanes group, u32 frame) const {
        P::sync(group);
        if (P::lane() == lowest(group)) {
            // No pins; a failed load may have left a status.
            P::template store<Scope::device>(&pool.frame(frame).note, 0u);
            State::change(pool.frame(frame), kBusy, kValid | kDirty, 0);
        }
        P::sync(group);
    }

    // ok: the page is here or comes. With `hold` the caller has its references.
    PENSTOCK_ONDEVICE_SLOW Status start(Lanes group, u64 key, const Want& want, u32& frame, bool hold = false) const {
        const u32 leader = lowest(group);
        if (key == kNoKey) return Status::out_of_range;
        u32 spare = kNoFrame;
        for (;;) {
            Step step = Step::again;
            if (P::lane() == leader) step = look(key, want.references, spare, frame);
            step = static_cast<Step>(P::from(group, static_cast<u32>(step), leader));
            frame = P::from(group, frame, leader);
            Status status = Status::ok;
            if (step == Step::bring && want.whole) {
                if (P::lane() == leader) P::template set_bits<Scope::device>(&pool.frame(frame).state, kDirty);
                return Status::pending;
            }
            if (step == Step::bring) status = bring(group, key, want.prompt ? 0 : want.deadline, frame);
            if (step == Step::here || step == Step::coming || step == Step::bring) {
                if (P::lane() != leader) return hold ? Status::ok : status;
                if (!hold)
                    drop(frame, want.references);
                else if (step == Step::here)
                    tell(&Tally::hits);
                else if (step == Step::coming)
                    tell(&Tally::joined);
                return hold ? Status::ok : status;
            }
            if (step == Step::room)
                status = make_room(group, key, want.deadline, spare);
            else if (agreed_late(group, want.deadline))
                status = Status::timed_out;
            else
                P::pause(64);
            if (status != Status::ok) {
                if (P::lane() == leader && spare != kNoFrame) pool.directory.give(spare);
                return status;
            }
        }
    }

    // Asks after a load that nobody else asks after at this moment, for up to `patience_ns`. Whether it ended.
    PENSTOCK_ONDEVICE_SLOW bool drive(Lanes group, u32 frame, u64 patience_ns = 0) const {
        const u32 leader = lowest(group);
        u32 mine = 0;
        Frame& at = pool.frame(frame);
        if (P::lane() == leader) {
            u32 state = State::load(at);
            mine = state & kInFlight && P::template swap_if<Scope::device>(&at.state, state, (state & ~kInFlight) + 1);
        }
        if (!P::from(group, mine, leader)) return false;
        const u32 ticket = P::template load<Scope::device>(&at.note);
        const u64 key = pool.directory.key(frame), began = P::now_ns();
        Status status = Status::pending;
        for (;;) {
            status = store.test(group, ticket, key, bytes_of(frame));
            const u64 waited = P::from(group, P::now_ns() - began, leader);
            if (status != Status::pending || waited >= patience_ns) break;
            P::pause(between_polls(waited));
        }
        P::sync(group);
        if (P::lane() == leader) driven(frame, status);
        return agreed(group, status) != Status::pending;
    }

    // Writes the page back if it is dirty, and returns when what was dirty at the call has been put, by whomever.
    PENSTOCK_ONDEVICE_SLOW Status clean(Lanes group, u32 frame, u64 deadline) const {
        const u32 leader = lowest(group);
        Frame& at = pool.frame(frame);
        for (;;) {
            u32 state = P::from(group, State::load(at), leader);
            // Busy, it is being overwritten, and not the page's yet.
            if (!(state & (kDirty | kWriting)) || state & kBusy) return Status::ok;
            if (!(state & kWriting)) {
                u32 mine = 0;
                if (P::lane() == leader)
                    mine = P::template swap_if<Scope::device>(&at.state, state, ((state & ~kDirty) | kWriting) + 1);
                if (P::from(group, mine, leader)) return write(group, frame, deadline);
            }
            if (agreed_late(group, deadline)) return Status::timed_out;
            P::pause(64);
        }
    }

    // The caller's claimed frame leaves its chain.
    PENSTOCK_ONDEVICE_SLOW void evict(u32 frame) const {
        pool.directory.unlink(frame);
        State::change(pool.frame(frame), ~(kProbation | kReferences), kBusy, 0);
        tell(&Tally::evictions);
    }

    // What `ask` says when the store has room, or timed_out. Loads that nobody asks after may hold all of its room, so
    // who waits for some asks after loads, from `frame` on.
    template <class Ask>
    PENSTOCK_ONDEVICE Status when_room(Lanes group, u64 deadline, u32 frame, const Ask& ask) const {
        for (;;) {
            const Status status = agreed(group, ask());
            if (status != Status::busy) return status;
            if (agreed_late(group, deadline)) return Status::timed_out;
            help(group, frame);
        }
    }

  private:
    // What the caller, who alone asked after the load of this frame, was told.
    PENSTOCK_ONDEVICE void driven(u32 frame, Status status) const {
        Frame& at = pool.frame(frame);
        if (status == Status::pending) {
            State::change(at, 0, kInFlight, ~0u);
        } else if (status == Status::ok) {
            P::template store<Scope::device>(&at.note, 0u);
            State::change(at, kBusy, kValid, ~0u);
        } else {
            fail(frame, status);
            drop(frame, 1);
        }
    }

    static constexpr u32 kHelpScan = 32;  // frames that one try looks at

    // Asks after the next load in flight behind `frame`, which goes on to there.
    PENSTOCK_ONDEVICE_SLOW void help(Lanes group, u32& frame) const {
        u32 in_flight = 0;
        for (u32 step = 0; P::lane() == lowest(group) && in_flight == 0 && step < kHelpScan; ++step) {
            frame = frame + 1 < pool.frames() ? frame + 1 : 0;
            in_flight = State::load(pool.frame(frame)) & kInFlight;
        }
        frame = P::from(group, frame, lowest(group));
        if (P::from(group, in_flight, lowest(group)) == 0 || !drive(group, frame)) P::pause(64);
    }

    enum class Step : u32 { here, coming, bring, room, again };

    // Adds references to a page in the state `as`: valid, or busy while it is being loaded.
    PENSTOCK_ONDEVICE bool joined(u32 frame, u32 references, u32 as) const {
        Frame& at = pool.frame(frame);
        u32 state = State::load(at);
        while ((state & (kValid | kBusy)) == as && (state & kReferences) + references <= kReferences) {
            const u32 touched = as == kValid ? Policy::touched(pool, frame, state) : state;
            if (P::template swap_if<Scope::device>(&at.state, state, touched + references)) return true;
        }
        return false;
    }

    // Under the bucket's lock: the page is here, or comes, or the spare frame becomes it. The leader's.
    PENSTOCK_ONDEVICE_SLOW Step look(u64 key, u32 references, u32& spare, u32& frame) const {
        Bucket& bucket = pool.directory.bucket(key);
        pool.directory.lock(bucket);
        frame = pool.directory.find(bucket, key);
        Step step = Step::again;
        if (frame == kNoFrame && spare == kNoFrame) {
            step = Step::room;
        } else if (frame == kNoFrame) {
            frame = spare;
            P::template store<Scope::device>(&pool.frame(frame).key, key);
            Policy::loaded(pool, frame);
            State::change(pool.frame(frame), 0, 0, references);
            pool.directory.link(bucket, frame);
            spare = kNoFrame;
            step = Step::bring;
        } else if (joined(frame, references, kValid)) {
            step = Step::here;
        } else if (joined(frame, references, kBusy)) {
            step = Step::coming;
        }
        pool.directory.unlock(bucket);
        if ((step == Step::here || step == Step::coming) && spare != kNoFrame) {
            pool.directory.give(spare);
            spare = kNoFrame;
        }
        return step;
    }

    // Starts the load of the caller's new frame. A failure is in the frame for all who wait for it.
    PENSTOCK_ONDEVICE_SLOW Status bring(Lanes group, u64 key, u64 deadline, u32 frame) const {
        const u32 leader = lowest(group);
        u32 ticket = 0;
        const Status status = when_room(group, deadline, frame, [&] {
            return store.begin(group, key, bytes_of(frame), deadline, ticket);
        });
        if (P::lane() == leader) {
            tell(&Tally::misses);
            if (status == Status::ok) {
                P::template store<Scope::device>(&pool.frame(frame).note, ticket);
                P::template set_bits<Scope::device>(&pool.frame(frame).state, kInFlight);
            } else {
                fail(frame, status);
            }
        }
        return status;
    }

    PENSTOCK_ONDEVICE_SLOW Status wait(Lanes group, const Want& want, u32 frame) const {
        const u32 leader = lowest(group);
        const u64 began = P::cycles();
        for (u32 pause = 32;; pause = pause < 1024 ? pause * 2 : pause) {
            const u32 state = P::from(group, State::load(pool.frame(frame)), leader);
            P::sync(group);  // what the leader may see, all may
            if (state & kValid) {
                if (P::lane() == leader)
                    P::tick(this->own_counts().waits + wait_bucket(P::cycles() - began), 1u);
                return Status::ok;
            }
            Status status = Status::pending;
            if (state & kFailed)
                status = static_cast<Status>(P::template load<Scope::device>(&pool.frame(frame).note));
            else if (agreed_late(group, want.deadline))
                status = Status::timed_out;
            status = agreed(group, status);
            if (status != Status::pending) {
                if (P::lane() == leader) drop(frame, want.references);
                return status;
            }
            if (!drive(group, frame, kPatienceNs)) P::pause(pause);
        }
    }

    // The load of the caller's busy frame has failed: newcomers no longer find it, those who wait see the status.
    PENSTOCK_ONDEVICE_SLOW void fail(u32 frame, Status status) const {
        pool.directory.unlink(frame);
        P::template store<Scope::device>(&pool.frame(frame).note, static_cast<u32>(status));
        State::change(pool.frame(frame), kBusy, kFailed, 0);
        tell(&Tally::failures);
    }

    // A frame of the caller's own, linked nowhere. all_pinned: up to the deadline every page was in use. After a failed
    // write-back only clean pages are taken; without one, that failure is the outcome.
    PENSTOCK_ONDEVICE_SLOW Status make_room(Lanes group, u64 key, u64 deadline, u32& spare) const {
        const u32 leader = lowest(group);
        Miss miss{key, false};
        for (Status failure = Status::ok;; miss.again = true) {
            Victim victim{Victim::Kind::held, kNoFrame};
            if (P::lane() == leader) victim = free_or_victim(miss, failure != Status::ok);
            victim.kind = static_cast<typename Victim::Kind>(P::from(group, static_cast<u32>(victim.kind), leader));
            victim.frame = spare = P::from(group, victim.frame, leader);
            if (victim.kind == Victim::Kind::taken) return Status::ok;
            if (victim.kind == Victim::Kind::dirty) {
                failure = clean(group, victim.frame, deadline);
                const bool ours = failure == Status::ok && taken_clean(victim.frame, leader);
                if (P::from(group, static_cast<u32>(ours), leader) != 0) return Status::ok;
            } else if (victim.kind == Victim::Kind::in_flight) {
                drive(group, victim.frame);
            } else if (failure != Status::ok) {
                return refused(spare, failure);
            }
            if (agreed_late(group, deadline))
                return refused(spare, victim.kind == Victim::Kind::held ? Status::all_pinned : Status::timed_out);
            if (victim.kind != Victim::Kind::dirty) P::pause(128);
        }
    }
    static PENSTOCK_ONDEVICE Status refused(u32& spare, Status status) {
        spare = kNoFrame;
        return status;
    }

    PENSTOCK_ONDEVICE Victim free_or_victim(const Miss& miss, bool only_clean) const {
        const u32 frame = pool.directory.take();
        if (frame != kNoFrame) return {Victim::Kind::taken, frame};
        const Victim victim = only_clean
                                  ? pool.search(pool.whole(), kScan, [](u32, u32, u32 state) { return state & kDirty; })
                                  : Policy::take(pool, miss);
        if (victim.kind == Victim::Kind::taken) evict(victim.frame);
        return victim;
    }

    // The victim that was just written back, unless it was used meanwhile or the policy may want to keep it.
    PENSTOCK_ONDEVICE bool taken_clean(u32 frame, u32 leader) const {
        if (P::lane() != leader || State::load(pool.frame(frame)) & kReferenced) return false;
        if (State::claim(pool.frame(frame)) != State::Claim::taken) return false;
        evict(frame);
        return true;
    }

    // Puts the page that the caller has marked as being written. What fails stays dirty.
    PENSTOCK_ONDEVICE Status write(Lanes group, u32 frame, u64 deadline) const {
        const u32 leader = lowest(group);
        const Status status = when_room(group, deadline, frame, [&] {
            return store.put(group, pool.directory.key(frame), bytes_of(frame), deadline);
        });
        P::sync(group);
        if (P::lane() == leader) {
            State::change(pool.frame(frame), kWriting, status == Status::ok ? 0 : kDirty, ~0u);
            if (status == Status::ok)
                tell(&Tally::write_backs);
            else
                tell(&Tally::failures);
        }
        return status;
    }

    static PENSTOCK_ONDEVICE Status agreed(Lanes group, Status status) {
        return static_cast<Status>(P::from(group, static_cast<int>(status), lowest(group)));
    }
    static PENSTOCK_ONDEVICE bool agreed_late(Lanes group, u64 deadline) {
        return P::from(group, static_cast<u32>(P::now_ns() >= deadline), lowest(group)) != 0;
    }
};

}  // namespace penstock::ondevice
