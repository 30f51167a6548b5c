// How a page comes into the cache: the slow half of the page cache.
//
// A frame is taken (free, or a victim written back and unlinked), linked as busy with references under its bucket's
// lock, and loaded; who waits for the page asks after its load at once (page_asks.hpp). Victims are written back while
// they stay in use for everyone (page_writes.hpp), so a frame is claimed only for the few steps of unlinking it, and a
// page that is wanted again meanwhile simply stays.
//
// A miss alone is as slow as its steps in a row: each exchange of a word is a way to the second-level cache and back,
// and each that orders others waits for them too. So what the lock or the state word orders anyway is relaxed.
#pragma once

#include "penstock/ondevice/page_writes.hpp"

namespace penstock::ondevice {

struct Want {
    u32 references;
    u64 deadline;
    bool whole = false;   // the caller overwrites all of the page, which need not be read before
    bool prompt = false;  // where the store has no room now, the load fails at once
};

template <class P, class Store, class Policy>
struct PageLoads : PageWrites<P, Store, Policy> {
    using Writes = PageWrites<P, Store, Policy>;
    using Quick = Hits<P, Policy>;
    using State = FrameState<P>;
    using Writes::agreed;
    using Writes::agreed_late;
    using Writes::bytes_of;
    using Writes::drop;
    using Writes::pool;
    using Writes::store;
    using Writes::tell;
    using Writes::when_room;
    using Writes::ask;
    using Writes::clean;
    using Writes::drive;
    using Writes::fail;

    // Loads the page if it is not here, and waits for it. A load that ended at another caller's earlier deadline is
    // begun again. pending, only if the whole page is to be overwritten: the frame is the caller's until `filled`.
    PENSTOCK_ONDEVICE_SLOW Status load(Lanes group, u64 key, const Want& want, u32& frame) const {
        for (;;) {
            Status status = start(group, key, want, frame, Hold::asking);
            if (status == Status::pending && want.whole) return status;
            const u64 began = P::cycles();
            if (status == Status::pending) {
                ask(group, frame, kPatienceNs);
                status = Status::ok;
            }
            if (status == Status::ok) status = wait(group, want, frame, began);
            if (status != Status::timed_out || agreed_late(group, want.deadline)) return status;
        }
    }

    // Waits for a page that `start` said is here or comes, for which the caller has references.
    PENSTOCK_ONDEVICE_SLOW Status finish(Lanes group, u64 key, const Want& want, u32& frame) const {
        const Status status = wait(group, want, frame, P::cycles());
        if (status != Status::timed_out || agreed_late(group, want.deadline)) return status;
        return load(group, key, want, frame);
    }

    // The page that the caller overwrites is complete: others see it from now on.
    PENSTOCK_ONDEVICE void filled(Lanes group, u32 frame) const {
        P::sync(group);
        if (P::lane() == lowest(group)) {
            // No pins; a failed load may have left a status.
            P::template store<Scope::device, Order::relaxed>(&pool.frame(frame).note, 0u);
            State::template change<Order::release>(pool.frame(frame), kBusy, kValid | kDirty, 0);
        }
        P::sync(group);
    }

    // What a caller of start has afterwards: nothing, its references, or, of a load that it began, also the asking
    // after it, which it does at once, for meanwhile nobody else may.
    enum class Hold : u8 { none, references, asking };

    // ok: the page is here or comes. pending: the caller is to overwrite it, or asks after its load.
    PENSTOCK_ONDEVICE_SLOW Status start(Lanes group, u64 key, const Want& want, u32& frame,
                                        Hold hold = Hold::none) const {
        const u32 leader = lowest(group);
        if (key == kNoKey) return Status::out_of_range;
        u32 spare = kNoFrame;
        // Who waits was told that the page is not here, and mostly that is still so.
        if (hold == Hold::asking && !want.whole && P::lane() == leader) spare = pool.directory.take();
        for (;;) {
            Step step = Step::again;
            if (P::lane() == leader) step = look(key, want.references, spare, frame);
            step = static_cast<Step>(P::from(group, static_cast<u32>(step), leader));
            frame = P::from(group, frame, leader);
            Status status = Status::ok;
            if (step == Step::bring && want.whole) {
                if (P::lane() == leader) {
                    Policy::loaded(pool, frame);
                    P::template set_bits<Scope::device>(&pool.frame(frame).state, kDirty);
                }
                return Status::pending;
            }
            if (step == Step::bring) {
                status = bring(group, key, want, frame, hold);
                if (hold == Hold::asking && status == Status::ok) return Status::pending;
            }
            if (step == Step::here || step == Step::coming || step == Step::bring) {
                const bool keeps = hold != Hold::none;
                if (P::lane() != leader) return keeps ? Status::ok : status;
                if (!keeps)
                    drop(frame, want.references);
                else if (step == Step::here)
                    tell(&Tally::hits);
                else if (step == Step::coming)
                    tell(&Tally::joined);
                return keeps ? Status::ok : status;
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

    // The frame of a page that is here, with a reference, or none. A hit may miss a page that is here, since it does
    // not wait for who changes the chain; this does.
    PENSTOCK_ONDEVICE_SLOW u32 held(u64 key) const {
        Bucket& bucket = pool.directory.bucket(key);
        pool.directory.lock(bucket);
        u32 frame = pool.directory.find(pool.directory.head(bucket), key);
        if (frame != kNoFrame && !joined(frame, 1, kValid)) frame = kNoFrame;
        pool.directory.unlock(bucket);
        return frame;
    }

    // The caller's claimed frame leaves its chain.
    PENSTOCK_ONDEVICE_SLOW void evict(u32 frame) const {
        pool.directory.unlink(frame);
        State::template change<Order::relaxed>(pool.frame(frame), ~(kProbation | kReferences), kBusy, 0);
        tell(&Tally::evictions);
    }

  private:
    enum class Step : u32 { here, coming, bring, room, again };

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

    // Under the bucket's lock: the page is here, or comes, or the spare frame becomes it. The leader's.
    PENSTOCK_ONDEVICE_SLOW Step look(u64 key, u32 references, u32& spare, u32& frame) const {
        Bucket& bucket = pool.directory.bucket(key);
        pool.directory.lock(bucket);
        const u64 head = pool.directory.head(bucket);
        frame = pool.directory.find(head, key);
        Step step = Step::again;
        if (frame == kNoFrame && spare == kNoFrame) {
            step = Step::room;
        } else if (frame == kNoFrame) {
            frame = spare;
            P::template store<Scope::device, Order::relaxed>(&pool.frame(frame).key, key);
            P::template add<Scope::device, Order::relaxed>(&pool.frame(frame).state, references);
            pool.directory.link(bucket, head, key, frame);
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
    PENSTOCK_ONDEVICE_SLOW Status bring(Lanes group, u64 key, const Want& want, u32 frame, Hold hold) const {
        const u32 leader = lowest(group);
        u32 ticket = 0;
        const u64 deadline = want.prompt ? 0 : want.deadline;
        const Status status = when_room(group, deadline, frame, [&] {
            return store.begin(group, key, bytes_of(frame), deadline, ticket);
        });
        if (P::lane() == leader) {
            tell(&Tally::misses);
            if (status == Status::ok) {
                Policy::loaded(pool, frame);  // while the request is on its way
                P::template store<Scope::device, Order::relaxed>(&pool.frame(frame).note, ticket);
                if (hold == Hold::asking)
                    P::template add<Scope::device, Order::relaxed>(&pool.frame(frame).state, 1u);
                else
                    P::template set_bits<Scope::device, Order::release>(&pool.frame(frame).state, kInFlight);
            } else {
                fail(frame, status);
            }
        }
        return status;
    }

    // `began`: the cycle from which the caller counts what it waits.
    PENSTOCK_ONDEVICE_SLOW Status wait(Lanes group, const Want& want, u32 frame, u64 began) const {
        const u32 leader = lowest(group);
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
            if (victim.kind == Victim::Kind::leaving) this->clean_ahead(group, deadline);
            if (victim.kind == Victim::Kind::dirty || victim.kind == Victim::Kind::leaving) {
                failure = clean(group, victim.frame, deadline, Neighbours::idle);
                const bool ours = failure == Status::ok && taken_clean(victim.frame, leader);
                if (P::from(group, static_cast<u32>(ours), leader) != 0) return Status::ok;
            } else if (victim.kind == Victim::Kind::in_flight) {
                drive(group, victim.frame);
            } else if (failure != Status::ok) {
                return refused(spare, failure);
            }
            if (agreed_late(group, deadline))
                return refused(spare, victim.kind == Victim::Kind::held ? Status::all_pinned : Status::timed_out);
            if (failure == Status::busy)
                failure = Status::ok;  // others write it, for long: another page may go before it
            else if (victim.kind != Victim::Kind::dirty && victim.kind != Victim::Kind::leaving)
                P::pause(128);
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

};

}  // namespace penstock::ondevice
