// A cache of pages in GPU memory that GPU threads fill, use and write back themselves.
//
// acquire gives a page that stays where it is until release. A caller that stored into the page says so to release,
// which makes the page dirty after the bytes were written; a read never does. Every wait has a deadline, and no caller
// waits with a lock in hand. Lanes of a warp that want the same page do everything once, together.
#pragma once

#include "penstock/ondevice/cache/loads.hpp"
#include "penstock/ondevice/cache/replacement_sweep.hpp"

namespace penstock::ondevice {

// What callers use, on the description of the cache. Each part holds the one below it by value: `loads` (a page that is
// missing comes), its `writes` (dirty pages leave), their `in_flight` (loads that any caller may finish), its `hits`.
template <class P, class Store, class Policy = SweepResistant>
struct PageCacheRef {
    using Platform = P;
    using State = FrameState<P>;
    using Hits = PageHits<P, Policy>;

    PENSTOCK_ONDEVICE const Hits& hits() const { return loads.writes.in_flight.hits; }
    PENSTOCK_ONDEVICE Hits& hits() { return loads.writes.in_flight.hits; }
    PENSTOCK_ONDEVICE const Store& store() const { return loads.writes.in_flight.store; }
    PENSTOCK_ONDEVICE Store& store() { return loads.writes.in_flight.store; }
    PENSTOCK_ONDEVICE const Pool<P>& pool() const { return hits().pool; }

    // The page of `key`, with a reference for the calling lane. Lanes that call together go together where their keys
    // agree. Where keys differ, some lanes may be told busy, without a reference. They call again when the others have
    // released what they got: a lane may not wait for a page while its warp holds others that another warp may wait for
    // with this one in hand. Lanes that all want one page are never told busy.
    PENSTOCK_ONDEVICE Status acquire(u64 key, u64 deadline, u32& frame) const {
        return acquire_of(hits(), {P::active(), key}, [&] { return deadline; }, frame);
    }
    PENSTOCK_ONDEVICE void release(u32 frame, bool stored = false) const { hits().release(frame, stored); }

    // acquire with the caller's copy of `hits`, which may be in registers, for lanes that are known. It asks
    // `deadline()` where a page is missing: a look at the clock costs much beside a hit.
    template <class Deadline>
    PENSTOCK_ONDEVICE Status acquire_of(const Hits& quick, const typename Hits::Call& call, const Deadline& deadline,
                                        u32& frame) const {
        Lanes group = 0;
        if (quick.all_here(call, [&] { quick.count_one(&Tally::hits); }, group, frame)) return Status::ok;
        u32 loaded = frame;  // its address is taken, so that `frame` stays in a register
        const Status status = acquire_missing(call.all, group, {call.key, deadline()}, loaded);
        frame = loaded;
        return status;
    }

    // Callers of which some have no page yet, and what all_here found for them. In each round all lanes call
    // `next_round`, and each lane that got its page uses and releases it, until the rounds are over for all lanes.
    struct Rounds {
        Lanes all, group;
        u64 key, deadline;
        u32 frame;
        Status status;  // pending before the first
    };
    enum class Round : u8 { got, none, over };
    PENSTOCK_ONDEVICE_SLOW Round next_round(Rounds& now) const {
        Lanes rest = now.all;
        if (now.status == Status::pending) {
            now.status = acquire_missing(now.all, now.group, {now.key, now.deadline}, now.frame);
        } else {
            rest = P::ballot(now.all, now.status == Status::busy);
            if (rest == 0) return Round::over;
            if (now.status != Status::busy) return Round::none;
            now.status = acquire_of(hits(), {rest, now.key}, [&] { return now.deadline; }, now.frame);
        }
        return now.status == Status::ok ? Round::got : Round::none;
    }

    // Acquires the pages that some of the callers `all` do not have yet. `group`: those of them that want the caller's
    // page. All lanes leave together: nothing else would bring the lanes of a warp together again.
    struct Missing {
        u64 key, deadline;
    };
    PENSTOCK_ONDEVICE_SLOW Status acquire_missing(Lanes all, Lanes group, const Missing& wanted, u32& frame) const {
        const Want want{count(group), wanted.deadline};
        const Callers callers{all, group};
        const Status status = group == all ? loads.load(all, wanted.key, want, frame)
                                           : load_apart(callers, wanted.key, want, frame);
        P::sync(all);
        return status;
    }

    // A page that all callers overwrite together. pending: it need not be read; the callers fill it and then call
    // `filled`. ok: it is here, as after acquire. Either way release(frame, true) gives the reference back.
    PENSTOCK_ONDEVICE Status overwrite(u64 key, u64 deadline, u32& frame) const {
        const Lanes group = P::same(P::active(), key);
        const Status status = loads.load(group, key, {count(group), deadline, true}, frame);
        P::sync(group);
        return status;
    }
    PENSTOCK_ONDEVICE void filled(u32 frame) const { loads.filled(P::same(P::active(), frame), frame); }

    PENSTOCK_ONDEVICE void* page(u32 frame) const { return hits().bytes_of(frame); }

    // Begins to load a page that is not here. The caller waits for a frame and not for the load, which any caller that
    // wants the page finishes. busy: as many requests are under way as the store can have.
    PENSTOCK_ONDEVICE Status prefetch(u64 key, u64 deadline) const {
        const Status status = begin(key, deadline, true);
        return status == Status::timed_out ? Status::busy : status;
    }
    // Begins to load the page. While the store has no room, the caller finishes other loads, unless it is `prompt`.
    PENSTOCK_ONDEVICE_SLOW Status begin(u64 key, u64 deadline, bool prompt = false) const {
        const Lanes group = P::same(P::active(), key);
        u32 frame = kNoFrame;
        const Status status = loads.start(group, key, {1, deadline, false, prompt}, frame);
        P::sync(group);
        return status;
    }

    // Loads the pages and keeps them until unpin: all of them or none, within the quota of the cache.
    PENSTOCK_ONDEVICE_SLOW Status pin(u64 first, u32 pages, u64 deadline) const {
        Status status = promise_pins(pages);
        if (status != Status::ok) return status;
        u32 done = 0;
        for (; status == Status::ok && done < pages; ++done) {
            status = pin_promised(alone(), first + done, deadline);
            if (status != Status::ok) break;
        }
        if (status != Status::ok) {
            unpin(first, done);
            return_pins(pages - done);
        }
        return status;
    }

    // The parts of pin, for callers that share the work. One of them has room for all pages promised first. Each
    // promise is then used, by all lanes of `group` together, or returned.
    PENSTOCK_ONDEVICE Status promise_pins(u32 pages) const {
        u32 pins = P::template load<Scope::device>(&pool().shared->pins);
        do {
            if (pages > quota || pins > quota - pages) return Status::all_pinned;
        } while (!P::template swap_if<Scope::device>(&pool().shared->pins, pins, pins + pages));
        return Status::ok;
    }
    PENSTOCK_ONDEVICE void return_pins(u32 pages) const {
        P::template add<Scope::device>(&pool().shared->pins, 0u - pages);
    }
    PENSTOCK_ONDEVICE_SLOW Status pin_promised(Lanes group, u64 key, u64 deadline) const {
        u32 frame = kNoFrame;
        const Status status = loads.load(group, key, {1, deadline}, frame);
        if (status == Status::ok && P::lane() == lowest(group))
            P::template add<Scope::device>(&pool().frame(frame).note, 1u);
        P::sync(group);
        return status;
    }

    // invalid when a page of the range was not pinned; the others are unpinned all the same.
    PENSTOCK_ONDEVICE_SLOW Status unpin(u64 first, u32 pages) const {
        Status status = Status::ok;
        for (u32 page = 0; page < pages; ++page) {
            const u32 frame = loads.held(first + page);
            const bool pinned = frame != kNoFrame && taken_pin(frame);
            if (frame != kNoFrame) hits().drop(frame, pinned ? 2 : 1);
            if (pinned)
                P::template add<Scope::device>(&pool().shared->pins, ~0u);
            else
                status = Status::invalid;
        }
        return status;
    }

    // Writes back what is dirty at the call and makes it durable. It returns the first failure. A page whose write-back
    // failed stays dirty. After a commit that failed, pages that were written back since the last good one may be lost
    // and are no longer dirty. Callers may share the work, `part` of `parts` each; the last of them commits.
    PENSTOCK_ONDEVICE_SLOW Status flush(u64 deadline) const {
        const Status status = write_back_part(0, 1, deadline);
        const Status durable = commit(deadline);
        return status != Status::ok ? status : durable;
    }

    // Lanes that call together with the same part copy together. It asks `deadline()` for each page, so that many pages
    // together may take long. After one page that did not go in its time, it tries the others and does not wait.
    template <class Deadline>
    PENSTOCK_ONDEVICE_SLOW Status write_back_part(u32 part, u32 parts, const Deadline& deadline) const {
        const Lanes group = P::same(P::active(), part);
        Status first = Status::ok;
        u64 until = 0;
        bool late = false;
        for (u32 frame = part; frame < pool().frames(); frame += parts) {
            if (!late) until = deadline();
            const Status status = loads.writes.clean(group, frame, until, Neighbours::all);
            P::sync(group);
            late |= status == Status::timed_out;
            if (first == Status::ok) first = status;
        }
        return first;
    }
    PENSTOCK_ONDEVICE Status write_back_part(u32 part, u32 parts, u64 deadline) const {
        return write_back_part(part, parts, [deadline] { return deadline; });
    }
    PENSTOCK_ONDEVICE Status commit(u64 deadline) const {
        const auto& in_flight = loads.writes.in_flight;
        return in_flight.when_room(in_flight, {alone(), deadline, 0},
                                   [&] { return in_flight.store.commit(alone(), deadline); });
    }

    // Drops pages so that the next acquire reads them anew. busy: some are in use, dirty or loading, and stay.
    PENSTOCK_ONDEVICE_SLOW Status invalidate(u64 first, u64 pages) const {
        Status status = Status::ok;
        const bool by_key = pages < pool().frames();
        for (u64 at = 0; at < (by_key ? pages : pool().frames()); ++at) {
            const u32 frame = by_key ? pool().directory.find_locked(first + at) : static_cast<u32>(at);
            if (frame != kNoFrame && !dropped(frame, first, pages)) status = Status::busy;
        }
        return status;
    }

    PENSTOCK_ONDEVICE void advise(u32 array, Advice advice) const {
        if (array < kAdvisedArrays)
            P::template store<Scope::device>(&pool().shared->advice[array], static_cast<u32>(advice));
    }

    // Finishes loads that no caller waits for. Requires: a caller settles the cache before its memory is freed.
    PENSTOCK_ONDEVICE_SLOW Status settle(u64 deadline) const {
        for (u32 frame = 0; frame < pool().frames(); ++frame) {
            while (State::load(pool().frame(frame)) & kInFlight) {
                loads.writes.in_flight.try_poll(alone(), frame);
                if (P::now_ns() >= deadline) return Status::timed_out;
            }
        }
        return Status::ok;
    }

    PageLoads<P, Store, Policy> loads;
    u32 quota;         // pages that may be pinned at once
    u32 together = 0;  // pages that waiting callers may hold between them: see together_of

  private:
    // Lanes that called together, and those of them that want the calling lane's page.
    struct Callers {
        Lanes all, group;
    };

    // Serves lanes that want several pages, some of which are missing.
    PENSTOCK_ONDEVICE_SLOW Status load_apart(const Callers& callers, u64 key, const Want& want, u32& frame) const {
        const Lanes all = callers.all;
        const u32 pages = count(P::ballot(all, P::lane() == lowest(callers.group)));
        if (!may_wait_with(all, pages)) return load_lowest(callers, key, want, frame);
        const Status status = load_each(callers, key, want, frame);
        if (P::lane() == lowest(all)) P::template add<Scope::device>(&pool().shared->together, 0u - pages);
        return status;
    }

    // Whether the callers may wait for so many pages while they hold some of them. A caller that waits without this
    // leave holds no page. So half of the frames that are never pinned always come free.
    PENSTOCK_ONDEVICE bool may_wait_with(Lanes all, u32 pages) const {
        const u32 leader = lowest(all);
        u32 mine = 0;
        if (P::lane() == leader) {
            u32* const word = &pool().shared->together;
            u32 taken = P::template load<Scope::device>(word);
            while (mine == 0 && pages <= together && taken <= together - pages)
                mine = P::template swap_if<Scope::device>(word, taken, taken + pages) ? 1 : 0;
        }
        return P::from(all, mine, leader) != 0;
    }

    // Serves the lanes whose pages are here. If there are none, all lanes load the first lane's page. The other lanes
    // are told busy.
    PENSTOCK_ONDEVICE_SLOW Status load_lowest(const Callers& callers, u64 key, const Want& want, u32& frame) const {
        const Lanes all = callers.all;
        if (P::ballot(all, frame != kNoFrame) != 0) return frame != kNoFrame ? Status::ok : Status::busy;
        const u32 first = lowest(all);
        const u32 references = P::from(all, want.references, first);
        u32 there = kNoFrame;
        const Status status = loads.load(all, P::from(all, key, first), {references, want.deadline}, there);
        if (!(callers.group >> first & 1)) return Status::busy;
        frame = there;
        return status;
    }

    // Loads all pages that are missing. The lanes begin every load before they wait for any.
    PENSTOCK_ONDEVICE_SLOW Status load_each(const Callers& callers, u64 key, const Want& want, u32& frame) const {
        const Lanes all = callers.all;
        const bool missing = frame == kNoFrame;
        Status status = Status::ok;
        if (missing) status = loads.start(callers.group, key, want, frame, Hold::references);
        Lanes waiting = P::ballot(all, missing && status == Status::ok);
        while (waiting != 0) {
            const u32 turn = lowest(waiting);
            const Lanes theirs = P::from(all, callers.group, turn);
            const u64 wanted = P::from(all, key, turn);
            u32 there = P::from(all, frame, turn);
            const Status found = loads.finish(all, wanted, {count(theirs), want.deadline}, there);
            if (theirs >> P::lane() & 1) {
                status = found;
                frame = there;
            }
            waiting &= ~theirs;
        }
        return status;
    }

    static PENSTOCK_ONDEVICE Lanes alone() { return Lanes{1} << P::lane(); }

    PENSTOCK_ONDEVICE bool within(u32 frame, u64 first, u64 pages) const {
        const u64 key = pool().directory.key(frame);
        return key != kNoKey && key >= first && key - first < pages;
    }

    // Whether this frame no longer holds a page of the range; drops the page if it can.
    PENSTOCK_ONDEVICE bool dropped(u32 frame, u64 first, u64 pages) const {
        if (!within(frame, first, pages)) return true;
        if (State::claim(pool().frame(frame)) != State::Claim::taken) return !within(frame, first, pages);
        if (!within(frame, first, pages)) {
            State::change(pool().frame(frame), kBusy, 0, 0);
            return true;
        }
        loads.writes.in_flight.evict(frame);
        pool().directory.give(frame);
        return true;
    }

    PENSTOCK_ONDEVICE bool taken_pin(u32 frame) const {
        u32* const note = &pool().frame(frame).note;
        u32 pins = P::template load<Scope::device>(note);
        while (pins != 0) {
            if (P::template swap_if<Scope::device>(note, pins, pins - 1)) return true;
        }
        return false;
    }
};

}  // namespace penstock::ondevice
