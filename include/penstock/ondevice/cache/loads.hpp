// How a page that is missing comes into the cache: one caller's way from the hit that failed to the page that it has. A
// caller is a warp's lanes that want the same page together; the lowest of them, its leader, acts for all.
//
//  1. A hit has looked the page up without a lock (hits.hpp) and found nothing. It may have missed a page that is here.
//  2. The leader takes a free frame as a spare before it looks again, because the page is usually still absent. It does
//     not evict a page for this: of many callers that want one page, all but one would evict theirs for nothing.
//  3. Under the lock of the page's bucket the leader looks again. If the page is here, or another caller loads it, the
//     leader adds references, and goes on with 7. If it has a spare frame, it links that frame as busy, with
//     references, and goes on with 5.
//  4. Without a spare frame the caller makes room: a free frame, or the victim that the policy names. A dirty victim is
//     first written back while every caller may go on using it (writes.hpp). So the caller claims a frame only for the
//     few steps of unlinking it, and a page that is wanted again meanwhile stays. It goes back to 3.
//  5. The caller asks the store for the page. While the store has no room, the caller polls other callers' loads.
//  6. The caller that began the load polls it at once, for kPatienceNs, and no other caller may meanwhile. Then it puts
//     the load in flight, for any caller to poll (in_flight.hpp).
//  7. A caller waits until the page is valid, the load has failed, or the deadline is past. While it waits, it polls
//     the load whenever no other caller does. So no caller has to come back for a load that it began.
//  8. The poll that sees the bytes arrive sets kValid. The poll that sees a failure takes the frame out of its chain
//     and leaves the status in `note`; the last caller to drop its references frees the frame.
//  9. A load fails as timed_out at the deadline of the caller that began it. A caller whose own deadline is later
//     begins again with 2.
//
// A miss alone is as slow as its steps in a row. Each exchange of a word is a way to the second-level cache and back,
// and one that orders others waits for them too. So what the lock or the state word orders anyway is relaxed. An
// acquire also empties the first-level cache of all that lies in memory, the thread's own stack too. So PageMiss works
// on a copy of the cache's description in registers, as far as the kernel has any: what a miss mostly does is inlined
// into one function, and what it rarely does is called on the description in memory.
#pragma once

#include "penstock/ondevice/cache/writes.hpp"

namespace penstock::ondevice {

struct Want {
    u32 references;
    u64 deadline;
    bool whole = false;   // the caller overwrites all of the page, which need not be read before
    bool prompt = false;  // the load fails at once if the store has no room now
};

// What a caller of `start` has afterwards: nothing; its references; or, for a load that it began, also the right to
// poll it, which no other caller has meanwhile.
enum class Hold : u8 { none, references, polling };

// The work of one caller on one page, with a copy of what it uses most.
template <class P, class Store, class Policy>
struct PageMiss {
    using Writes = PageWrites<P, Store, Policy>;
    using State = FrameState<P>;

    LoadsInFlight<P, Store, Policy> own;  // the copy
    const Writes& cache;                        // in memory

    PENSTOCK_ONDEVICE explicit PageMiss(const Writes& writes) : own(writes.in_flight), cache(writes) {}

    // See PageLoads::load.
    PENSTOCK_ONDEVICE Status load(Lanes group, u64 key, const Want& want, u32& frame) const {
        for (;;) {
            Status status = start(group, key, want, frame, Hold::polling);
            if (status == Status::pending && want.whole) return status;
            const u64 began = P::cycles();
            if (status == Status::pending) {
                // The caller's references keep the page here, and the lanes met after the store copied it: the caller
                // need not look again.
                if (own.poll(cache.in_flight, group, frame, kPatienceNs) == Status::ok) return arrived(group, began);
                status = Status::ok;
            }
            if (status == Status::ok) status = wait(group, want, frame, began);
            if (status != Status::timed_out || agreed_late<P>(group, want.deadline)) return status;
        }
    }

    // See PageLoads::start.
    PENSTOCK_ONDEVICE Status start(Lanes group, u64 key, const Want& want, u32& frame, Hold hold) const {
        const Pool<P>& pool = own.hits.pool;
        const u32 leader = lowest(group);
        if (key == kNoKey) return Status::out_of_range;
        Search search{{key, false}, false};
        u32 spare = kNoFrame;
        if (hold == Hold::polling && !want.whole && P::lane() == leader) {
            spare = pool.directory.take();
            search.full = spare == kNoFrame;
        }
        for (;;) {
            Found found = Found::again;
            if (P::lane() == leader) found = look(key, want.references, spare, frame);
            found = static_cast<Found>(P::from(group, static_cast<u32>(found), leader));
            frame = P::from(group, frame, leader);
            Status status = Status::ok;
            if (found == Found::bring && want.whole) {
                if (P::lane() == leader) {
                    Policy::loaded(pool, frame);
                    P::template set_bits<Scope::device>(&pool.frame(frame).state, kDirty);
                }
                return Status::pending;
            }
            if (found == Found::bring) {
                status = bring(group, key, want, frame, hold);
                if (hold == Hold::polling && status == Status::ok) return Status::pending;
            }
            if (found == Found::here || found == Found::coming || found == Found::bring) {
                const bool keeps = hold != Hold::none;
                if (P::lane() != leader) return keeps ? Status::ok : status;
                if (!keeps)
                    own.hits.drop(frame, want.references);
                else if (found == Found::here)
                    own.hits.count_one(&Tally::hits);
                else if (found == Found::coming)
                    own.hits.count_one(&Tally::joined);
                return keeps ? Status::ok : status;
            }
            if (found == Found::room)
                status = make_room(group, search, want.deadline, spare);
            else if (agreed_late<P>(group, want.deadline))
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
            const u32 state = P::from(group, State::load(own.hits.pool.frame(frame)), leader);
            P::sync(group);  // what the leader may see, all may
            if (state & kValid) return arrived(group, began);
            Status status = Status::pending;
            if (state & kFailed)
                status = static_cast<Status>(P::template load<Scope::device>(&own.hits.pool.frame(frame).note));
            else if (agreed_late<P>(group, want.deadline))
                status = Status::timed_out;
            status = agreed<P>(group, status);
            if (status != Status::pending) {
                if (P::lane() == leader) own.hits.drop(frame, want.references);
                return status;
            }
            if (!cache.in_flight.try_poll(group, frame, kPatienceNs)) P::pause(pause);
        }
    }

  private:
    enum class Found : u32 { here, coming, bring, room, again };

    // The leader's search for a frame, and whether it knows that none is free.
    struct Search {
        Miss miss;
        bool full;
    };

    // Looks for the page under its bucket's lock, and links the spare frame as the page's if it is absent. By the
    // leader alone.
    PENSTOCK_ONDEVICE Found look(u64 key, u32 references, u32& spare, u32& frame) const {
        const Pool<P>& pool = own.hits.pool;
        Bucket& bucket = pool.directory.bucket(key);
        pool.directory.lock(bucket);
        const u64 head = pool.directory.head(bucket);
        frame = pool.directory.find(head, key);
        Found found = Found::again;
        if (frame == kNoFrame && spare == kNoFrame) {
            found = Found::room;
        } else if (frame == kNoFrame) {
            frame = spare;
            P::template store<Scope::device, Order::relaxed>(&pool.frame(frame).key, key);
            P::template add<Scope::device, Order::relaxed>(&pool.frame(frame).state, references);
            pool.directory.link(bucket, head, key, frame);
            spare = kNoFrame;
            found = Found::bring;
        } else if (own.joined(frame, references, kValid)) {
            found = Found::here;
        } else if (own.joined(frame, references, kBusy)) {
            found = Found::coming;
        }
        pool.directory.unlock(bucket);
        if ((found == Found::here || found == Found::coming) && spare != kNoFrame) {
            pool.directory.give(spare);
            spare = kNoFrame;
        }
        return found;
    }

    // Starts the load of the caller's new frame. If that fails, the frame says so to all who wait for it. Pairs with:
    // the acquiring exchange of LoadsInFlight::try_poll, which reads the ticket after it.
    PENSTOCK_ONDEVICE Status bring(Lanes group, u64 key, const Want& want, u32 frame, Hold hold) const {
        const u32 leader = lowest(group);
        u32 ticket = 0;
        const u64 deadline = want.prompt ? 0 : want.deadline;
        const Status status = own.when_room(cache.in_flight, {group, deadline, frame}, [&] {
            return own.store.begin(group, key, own.hits.bytes_of(frame), deadline, ticket);
        });
        if (P::lane() == leader) {
            own.hits.count_one(&Tally::misses);
            if (status == Status::ok) {
                Policy::loaded(own.hits.pool, frame);  // while the request is on its way
                P::template store<Scope::device, Order::relaxed>(&own.hits.pool.frame(frame).note, ticket);
                if (hold == Hold::polling)
                    P::template add<Scope::device, Order::relaxed>(&own.hits.pool.frame(frame).state, 1u);
                else
                    P::template set_bits<Scope::device, Order::release>(&own.hits.pool.frame(frame).state, kInFlight);
            } else {
                cache.in_flight.fail(frame, status);
            }
        }
        return status;
    }

    // The caller has its page. `began`: the cycle from which it counts what it waited.
    PENSTOCK_ONDEVICE Status arrived(Lanes group, u64 began) const {
        if (P::lane() == lowest(group)) P::tick(own.hits.own_counts().waits + wait_bucket(P::cycles() - began), 1u);
        return Status::ok;
    }

    // Makes `spare` a frame of the caller's own, linked nowhere. all_pinned: every page was in use up to the deadline.
    // After a write-back that failed the caller takes clean pages alone; without one, that failure is the outcome.
    PENSTOCK_ONDEVICE Status make_room(Lanes group, Search& search, u64 deadline, u32& spare) const {
        const u32 leader = lowest(group);
        for (Status failure = Status::ok;;) {
            Victim victim{Victim::Kind::held, kNoFrame};
            // The leader did not look for a free frame this time: one may be free by now, so it looks again at once. Of
            // several lanes the others pause.
            const bool looked = !search.full;
            if (P::lane() == leader) victim = free_or_victim(search, failure != Status::ok);
            victim.kind = static_cast<typename Victim::Kind>(P::from(group, static_cast<u32>(victim.kind), leader));
            victim.frame = spare = P::from(group, victim.frame, leader);
            if (victim.kind == Victim::Kind::taken) return Status::ok;
            if (victim.kind == Victim::Kind::leaving) cache.clean_ahead(group, deadline);
            if (leaves(victim)) {
                failure = cache.clean(group, victim.frame, deadline, Neighbours::idle);
                const bool ours = failure == Status::ok && taken_clean(victim.frame, leader);
                if (P::from(group, static_cast<u32>(ours), leader) != 0) return Status::ok;
            } else if (victim.kind == Victim::Kind::in_flight) {
                cache.in_flight.try_poll(group, victim.frame);
            } else if (failure != Status::ok) {
                return refused(spare, failure);
            }
            if (agreed_late<P>(group, deadline))
                return refused(spare, victim.kind == Victim::Kind::held ? Status::all_pinned : Status::timed_out);
            if (failure == Status::busy)
                failure = Status::ok;  // others have been writing it for long: another page may go before it
            else if (!leaves(victim) && looked)
                P::pause(128);
        }
    }
    // Whether the victim is to be written back before its frame is another page's.
    static PENSTOCK_ONDEVICE bool leaves(const Victim& victim) {
        return victim.kind == Victim::Kind::dirty || victim.kind == Victim::Kind::leaving;
    }
    static PENSTOCK_ONDEVICE Status refused(u32& spare, Status status) {
        spare = kNoFrame;
        return status;
    }

    PENSTOCK_ONDEVICE Victim free_or_victim(Search& search, bool only_clean) const {
        const Pool<P>& pool = own.hits.pool;
        const u32 frame = search.full ? kNoFrame : pool.directory.take();
        if (frame != kNoFrame) return {Victim::Kind::taken, frame};
        search.full = false;
        const Victim victim = only_clean
                                  ? pool.search(pool.whole(), kScan, [](u32, u32, u32 now) { return now & kDirty; })
                                  : Policy::take(pool, search.miss);
        search.miss.again = true;
        if (victim.kind == Victim::Kind::taken) own.evict(victim.frame);
        return victim;
    }

    // Takes the victim that was just written back, unless it was used meanwhile or the policy may want to keep it.
    PENSTOCK_ONDEVICE bool taken_clean(u32 frame, u32 leader) const {
        if (P::lane() != leader || State::load(own.hits.pool.frame(frame)) & kReferenced) return false;
        if (State::claim(own.hits.pool.frame(frame)) != State::Claim::taken) return false;
        own.evict(frame);
        return true;
    }
};

// What callers that miss call: on the description in memory, which each call copies for itself.
template <class P, class Store, class Policy>
struct PageLoads {
    using Missed = PageMiss<P, Store, Policy>;
    using State = FrameState<P>;

    PageWrites<P, Store, Policy> writes;

    PENSTOCK_ONDEVICE const Pool<P>& pool() const { return writes.in_flight.hits.pool; }

    // Loads the page if it is not here, and waits for it. pending, only if the whole page is to be overwritten: the
    // frame is the caller's until `filled`.
    PENSTOCK_ONDEVICE_SLOW Status load(Lanes group, u64 key, const Want& want, u32& frame) const {
        const Want wanted = want;
        u32 found = frame;  // a variable of this function, so that it is in a register
        const Status status = Missed(writes).load(group, key, wanted, found);
        frame = found;
        return status;
    }

    // Begins to load the page if it is not here. ok: it is here or comes. pending: the caller is to overwrite it, or to
    // poll its load.
    PENSTOCK_ONDEVICE_SLOW Status start(Lanes group, u64 key, const Want& want, u32& frame,
                                        Hold hold = Hold::none) const {
        const Want wanted = want;
        u32 found = frame;
        const Status status = Missed(writes).start(group, key, wanted, found, hold);
        frame = found;
        return status;
    }

    // Waits for a page that `start` said is here or comes. Requires: the caller has references to it.
    PENSTOCK_ONDEVICE_SLOW Status finish(Lanes group, u64 key, const Want& want, u32& frame) const {
        const Status status = Missed(writes).wait(group, want, frame, P::cycles());
        if (status != Status::timed_out || agreed_late<P>(group, want.deadline)) return status;
        return load(group, key, want, frame);
    }

    // Says that the page which the caller overwrites is complete: others see it from now on. Pairs with: the acquiring
    // addition of PageHits::hit.
    PENSTOCK_ONDEVICE void filled(Lanes group, u32 frame) const {
        P::sync(group);
        if (P::lane() == lowest(group)) {
            // No pins; a failed load may have left a status here.
            P::template store<Scope::device, Order::relaxed>(&pool().frame(frame).note, 0u);
            State::template change<Order::release>(pool().frame(frame), kBusy, kValid | kDirty, 0);
        }
        P::sync(group);
    }

    // Adds a reference to the page and returns its frame, or returns kNoFrame. It waits for the bucket's lock, so it
    // finds every page that is here, where a hit may miss one whose chain is changing.
    PENSTOCK_ONDEVICE_SLOW u32 held(u64 key) const {
        Bucket& bucket = pool().directory.bucket(key);
        pool().directory.lock(bucket);
        u32 frame = pool().directory.find(pool().directory.head(bucket), key);
        if (frame != kNoFrame && !writes.in_flight.joined(frame, 1, kValid)) frame = kNoFrame;
        pool().directory.unlock(bucket);
        return frame;
    }
};

}  // namespace penstock::ondevice
