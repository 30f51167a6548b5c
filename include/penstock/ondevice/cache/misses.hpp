// One caller's way to a page that it does not have: the part of the slow half of the page cache that many wait for.
//
// A frame is taken (free, or a victim written back and unlinked), linked as busy with references under its bucket's
// lock, and loaded; who waits for the page asks after its load at once (asks.hpp). Victims are written back while
// they stay in use for everyone (writes.hpp), so a frame is claimed only for the few steps of unlinking it, and a
// page that is wanted again meanwhile simply stays.
//
// A miss alone is as slow as its steps in a row: each exchange of a word is a way to the second-level cache and back,
// and each that orders others waits for them too. So what the lock or the state word orders anyway is relaxed. And each
// acquire empties the caller's first-level cache, of all that lies in memory, its own stack too: so the caller has a
// copy of the cache's description in registers, as far as the kernel has any, all that it mostly does is inlined into
// one function, and what it rarely does is called on `home`, the description in memory.
#pragma once

#include "penstock/ondevice/cache/writes.hpp"

namespace penstock::ondevice {

struct Want {
    u32 references;
    u64 deadline;
    bool whole = false;   // the caller overwrites all of the page, which need not be read before
    bool prompt = false;  // where the store has no room now, the load fails at once
};

// What a caller of start has afterwards: nothing, its references, or, of a load that it began, also the asking after
// it, which it does at once, for meanwhile nobody else may.
enum class Hold : u8 { none, references, asking };

template <class P, class Store, class Policy>
struct PageMisses : PageWrites<P, Store, Policy> {
    using Writes = PageWrites<P, Store, Policy>;
    using State = FrameState<P>;
    using Writes::agreed;
    using Writes::agreed_late;
    using Writes::bytes_of;
    using Writes::drop;
    using Writes::pool;
    using Writes::store;
    using Writes::tell;

    const Writes& home;

    PENSTOCK_ONDEVICE explicit PageMisses(const Writes& cache) : Writes(cache), home(cache) {}

    // See PageLoads::load.
    PENSTOCK_ONDEVICE Status load(Lanes group, u64 key, const Want& want, u32& frame) const {
        for (;;) {
            Status status = start(group, key, want, frame, Hold::asking);
            if (status == Status::pending && want.whole) return status;
            const u64 began = P::cycles();
            if (status == Status::pending) {
                // The page stays for the caller's references, and the lanes met after it was copied: no need to look
                // again.
                if (this->ask(home, group, frame, kPatienceNs) == Status::ok) return arrived(group, began);
                status = Status::ok;
            }
            if (status == Status::ok) status = wait(group, want, frame, began);
            if (status != Status::timed_out || agreed_late(group, want.deadline)) return status;
        }
    }

    // See PageLoads::start.
    PENSTOCK_ONDEVICE Status start(Lanes group, u64 key, const Want& want, u32& frame, Hold hold) const {
        const u32 leader = lowest(group);
        if (key == kNoKey) return Status::out_of_range;
        Search search{{key, false}, false};
        u32 spare = kNoFrame;
        // Who waits was told that the page is not here, and mostly that is still so: it looks with a free frame in
        // hand. Not with another page's: of callers who want one page together, all but one would drive one out for
        // nothing.
        if (hold == Hold::asking && !want.whole && P::lane() == leader) {
            spare = pool.directory.take();
            search.full = spare == kNoFrame;
        }
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
                status = make_room(group, search, want.deadline, spare);
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

    // See PageLoads::finish.
    PENSTOCK_ONDEVICE Status wait(Lanes group, const Want& want, u32 frame, u64 began) const {
        const u32 leader = lowest(group);
        for (u32 pause = 32;; pause = pause < 1024 ? pause * 2 : pause) {
            const u32 state = P::from(group, State::load(pool.frame(frame)), leader);
            P::sync(group);  // what the leader may see, all may
            if (state & kValid) return arrived(group, began);
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
            if (!home.drive(group, frame, kPatienceNs)) P::pause(pause);
        }
    }

  private:
    enum class Step : u32 { here, coming, bring, room, again };

    // A caller's search for a frame, and whether it knows that none is free. The leader's.
    struct Search {
        Miss miss;
        bool full;
    };

    // Under the bucket's lock: the page is here, or comes, or the spare frame becomes it. The leader's.
    PENSTOCK_ONDEVICE Step look(u64 key, u32 references, u32& spare, u32& frame) const {
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
        } else if (this->joined(frame, references, kValid)) {
            step = Step::here;
        } else if (this->joined(frame, references, kBusy)) {
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
    PENSTOCK_ONDEVICE Status bring(Lanes group, u64 key, const Want& want, u32 frame, Hold hold) const {
        const u32 leader = lowest(group);
        u32 ticket = 0;
        const u64 deadline = want.prompt ? 0 : want.deadline;
        const Status status = Writes::when_room(home, {group, deadline, frame}, [&] {
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
                home.fail(frame, status);
            }
        }
        return status;
    }

    // The caller has its page. `began`: the cycle from which it counts what it waited.
    PENSTOCK_ONDEVICE Status arrived(Lanes group, u64 began) const {
        if (P::lane() == lowest(group)) P::tick(this->own_counts().waits + wait_bucket(P::cycles() - began), 1u);
        return Status::ok;
    }

    // A frame of the caller's own, linked nowhere. all_pinned: up to the deadline every page was in use. After a failed
    // write-back only clean pages are taken; without one, that failure is the outcome.
    PENSTOCK_ONDEVICE Status make_room(Lanes group, Search& search, u64 deadline, u32& spare) const {
        const u32 leader = lowest(group);
        for (Status failure = Status::ok;;) {
            Victim victim{Victim::Kind::held, kNoFrame};
            // Else a frame may be free by now, and a lone caller looks at once; of several lanes the others pause.
            const bool looked = !search.full;
            if (P::lane() == leader) victim = free_or_victim(search, failure != Status::ok);
            victim.kind = static_cast<typename Victim::Kind>(P::from(group, static_cast<u32>(victim.kind), leader));
            victim.frame = spare = P::from(group, victim.frame, leader);
            if (victim.kind == Victim::Kind::taken) return Status::ok;
            if (victim.kind == Victim::Kind::leaving) home.clean_ahead(group, deadline);
            if (leaves(victim)) {
                failure = home.clean(group, victim.frame, deadline, Neighbours::idle);
                const bool ours = failure == Status::ok && taken_clean(victim.frame, leader);
                if (P::from(group, static_cast<u32>(ours), leader) != 0) return Status::ok;
            } else if (victim.kind == Victim::Kind::in_flight) {
                home.drive(group, victim.frame);
            } else if (failure != Status::ok) {
                return refused(spare, failure);
            }
            if (agreed_late(group, deadline))
                return refused(spare, victim.kind == Victim::Kind::held ? Status::all_pinned : Status::timed_out);
            if (failure == Status::busy)
                failure = Status::ok;  // others write it, for long: another page may go before it
            else if (!leaves(victim) && looked)
                P::pause(128);
        }
    }
    // To be written back before it is another page's.
    static PENSTOCK_ONDEVICE bool leaves(const Victim& victim) {
        return victim.kind == Victim::Kind::dirty || victim.kind == Victim::Kind::leaving;
    }
    static PENSTOCK_ONDEVICE Status refused(u32& spare, Status status) {
        spare = kNoFrame;
        return status;
    }

    PENSTOCK_ONDEVICE Victim free_or_victim(Search& search, bool only_clean) const {
        const u32 frame = search.full ? kNoFrame : pool.directory.take();
        if (frame != kNoFrame) return {Victim::Kind::taken, frame};
        search.full = false;
        const Victim victim = only_clean
                                  ? pool.search(pool.whole(), kScan, [](u32, u32, u32 state) { return state & kDirty; })
                                  : Policy::take(pool, search.miss);
        search.miss.again = true;
        if (victim.kind == Victim::Kind::taken) this->evict(victim.frame);
        return victim;
    }

    // The victim that was just written back, unless it was used meanwhile or the policy may want to keep it.
    PENSTOCK_ONDEVICE bool taken_clean(u32 frame, u32 leader) const {
        if (P::lane() != leader || State::load(pool.frame(frame)) & kReferenced) return false;
        if (State::claim(pool.frame(frame)) != State::Claim::taken) return false;
        this->evict(frame);
        return true;
    }
};

}  // namespace penstock::ondevice
