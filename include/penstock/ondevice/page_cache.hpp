// A cache of pages in GPU memory that GPU threads fill, use and write back themselves.
//
// acquire gives a page that stays where it is until release; what was stored into it is told to release, which makes
// the page dirty after its bytes were written, never a read. Nothing waits for ever: every wait has a deadline, and no
// lock is held while waiting. Lanes of a warp that want the same page do everything once, together.
#pragma once

#include "penstock/ondevice/cache/loads.hpp"
#include "penstock/ondevice/cache/replacement_sweep.hpp"

namespace penstock::ondevice {

template <class P, class Store, class Policy = SweepResistant>
struct PageCacheRef : PageLoads<P, Store, Policy> {
    using Platform = P;
    using Base = PageLoads<P, Store, Policy>;
    using State = FrameState<P>;
    using Base::pool;

    // The page of `key`, with a reference for the calling lane. Lanes that call together go together where keys agree.
    // Where they do not, some may be told busy, without a reference: they call again when what the others got is
    // released, for nobody may wait for a page while its warp holds others, which somebody may wait for who holds this
    // one. Where all want one page, nobody is ever told busy.
    PENSTOCK_ONDEVICE Status acquire(u64 key, u64 deadline, u32& frame) const {
        return acquire_of(*this, {P::active(), key}, [&] { return deadline; }, frame);
    }
    // The same with a copy of the quick half, which may be in registers, for lanes that are known. `deadline()` is
    // asked for where something is missing: to ask the clock costs much beside a hit.
    template <class Deadline>
    PENSTOCK_ONDEVICE Status acquire_of(const typename Base::Quick& quick, const typename Base::Quick::Call& call,
                                        const Deadline& deadline, u32& frame) const {
        Lanes group = 0;
        if (quick.all_here(call, [&] { quick.tell(&Tally::hits); }, group, frame)) return Status::ok;
        u32 loaded = frame;  // of its own, so that `frame` stays in a register
        const Status status = acquire_missing(call.all, group, {call.key, deadline()}, loaded);
        frame = loaded;
        return status;
    }

    // Callers of whom all_here said that some have no page yet, and what it found. Each round, all of them call
    // `next_round` and who got its page uses and releases it, until it is over for all of them together.
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
            now.status = acquire_of(*this, {rest, now.key}, [&] { return now.deadline; }, now.frame);
        }
        return now.status == Status::ok ? Round::got : Round::none;
    }

    // The pages that some of the callers `all` do not have yet; `group` are those of them that want the caller's page.
    // They leave together: nothing else would bring lanes of a warp together again.
    struct Missing {
        u64 key, deadline;
    };
    PENSTOCK_ONDEVICE_SLOW Status acquire_missing(Lanes all, Lanes group, const Missing& wanted, u32& frame) const {
        const Want want{count(group), wanted.deadline};
        const Callers callers{all, group};
        const Status status = group == all ? this->load(all, wanted.key, want, frame)
                                           : load_apart(callers, wanted.key, want, frame);
        P::sync(all);
        return status;
    }

    // A page that all callers together overwrite. pending: it need not be read, and is the callers' to fill up to
    // `filled`; ok: it is here, as after acquire. Either way release(frame, true) gives the reference back.
    PENSTOCK_ONDEVICE Status overwrite(u64 key, u64 deadline, u32& frame) const {
        const Lanes group = P::same(P::active(), key);
        const Status status = this->load(group, key, {count(group), deadline, true}, frame);
        P::sync(group);
        return status;
    }
    PENSTOCK_ONDEVICE void filled(u32 frame) const { Base::filled(P::same(P::active(), frame), frame); }

    PENSTOCK_ONDEVICE void* page(u32 frame) const { return this->bytes_of(frame); }

    // Begins to load a page that is not here, and waits for nothing but room: whoever wants the page finishes it. busy:
    // as many requests are under way as the store can have.
    PENSTOCK_ONDEVICE Status prefetch(u64 key, u64 deadline) const {
        const Status status = begin(key, deadline, true);
        return status == Status::timed_out ? Status::busy : status;
    }
    // The same; where the store has no room, it finishes other loads until it has, unless it is to be prompt.
    PENSTOCK_ONDEVICE_SLOW Status begin(u64 key, u64 deadline, bool prompt = false) const {
        const Lanes group = P::same(P::active(), key);
        u32 frame = kNoFrame;
        const Status status = this->start(group, key, {1, deadline, false, prompt}, frame);
        P::sync(group);
        return status;
    }

    // Loads the pages and keeps them until unpin. All or nothing, within the quota of the cache.
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

    // The parts of pin, for callers who share the work: room for all of them is promised first, each promise is then
    // used, by all lanes of `group` together, or returned.
    PENSTOCK_ONDEVICE Status promise_pins(u32 pages) const {
        u32 pins = P::template load<Scope::device>(&pool.shared->pins);
        do {
            if (pages > quota || pins > quota - pages) return Status::all_pinned;
        } while (!P::template swap_if<Scope::device>(&pool.shared->pins, pins, pins + pages));
        return Status::ok;
    }
    PENSTOCK_ONDEVICE void return_pins(u32 pages) const {
        P::template add<Scope::device>(&pool.shared->pins, 0u - pages);
    }
    PENSTOCK_ONDEVICE_SLOW Status pin_promised(Lanes group, u64 key, u64 deadline) const {
        u32 frame = kNoFrame;
        const Status status = this->load(group, key, {1, deadline}, frame);
        if (status == Status::ok && P::lane() == lowest(group))
            P::template add<Scope::device>(&pool.frame(frame).note, 1u);
        P::sync(group);
        return status;
    }

    // invalid when a page of the range was not pinned; the others are unpinned all the same.
    PENSTOCK_ONDEVICE_SLOW Status unpin(u64 first, u32 pages) const {
        Status status = Status::ok;
        for (u32 page = 0; page < pages; ++page) {
            const u32 frame = this->held(first + page);
            const bool pinned = frame != kNoFrame && taken_pin(frame);
            if (frame != kNoFrame) this->drop(frame, pinned ? 2 : 1);
            if (pinned)
                P::template add<Scope::device>(&pool.shared->pins, ~0u);
            else
                status = Status::invalid;
        }
        return status;
    }

    // Writes back what was dirty when it was called and makes it durable. The first failure is returned; a page whose
    // write-back failed stays dirty. After a failed commit nothing is known of what was written back since the last
    // good one, and those pages are no longer dirty. Callers may share the work, `part` of `parts` each; the last
    // commits.
    PENSTOCK_ONDEVICE_SLOW Status flush(u64 deadline) const {
        const Status status = write_back_part(0, 1, deadline);
        const Status durable = commit(deadline);
        return status != Status::ok ? status : durable;
    }

    // Lanes that call together with the same part copy together. `deadline()` is asked for each page, so that many may
    // take long together, until one has not gone in its time: then the others are tried and not waited for.
    template <class Deadline>
    PENSTOCK_ONDEVICE_SLOW Status write_back_part(u32 part, u32 parts, const Deadline& deadline) const {
        const Lanes group = P::same(P::active(), part);
        Status first = Status::ok;
        u64 until = 0;
        bool late = false;
        for (u32 frame = part; frame < pool.frames(); frame += parts) {
            if (!late) until = deadline();
            const Status status = this->clean(group, frame, until, Neighbours::all);
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
        return this->when_room(*this, {alone(), deadline, 0}, [&] { return this->store.commit(alone(), deadline); });
    }

    // Drops pages so that the next acquire reads them anew. busy when some are in use, dirty or loading; those stay.
    PENSTOCK_ONDEVICE_SLOW Status invalidate(u64 first, u64 pages) const {
        Status status = Status::ok;
        const bool by_key = pages < pool.frames();
        for (u64 at = 0; at < (by_key ? pages : pool.frames()); ++at) {
            const u32 frame = by_key ? pool.directory.find_locked(first + at) : static_cast<u32>(at);
            if (frame != kNoFrame && !dropped(frame, first, pages)) status = Status::busy;
        }
        return status;
    }

    PENSTOCK_ONDEVICE void advise(u32 array, Advice advice) const {
        if (array < kAdvisedArrays)
            P::template store<Scope::device>(&pool.shared->advice[array], static_cast<u32>(advice));
    }

    // Finishes loads that nobody waits for. To be called before the memory goes.
    PENSTOCK_ONDEVICE_SLOW Status settle(u64 deadline) const {
        for (u32 frame = 0; frame < pool.frames(); ++frame) {
            while (State::load(pool.frame(frame)) & kInFlight) {
                this->drive(alone(), frame);
                if (P::now_ns() >= deadline) return Status::timed_out;
            }
        }
        return Status::ok;
    }

    u32 quota;         // pages that may be pinned at once
    u32 together = 0;  // pages that callers who wait may have between them: see together_of

  private:
    // Lanes that called together, and those of them that want the caller's page.
    struct Callers {
        Lanes all, group;
    };

    // Lanes that want several pages, some of which are missing.
    PENSTOCK_ONDEVICE_SLOW Status load_apart(const Callers& callers, u64 key, const Want& want, u32& frame) const {
        const Lanes all = callers.all;
        const u32 pages = count(P::ballot(all, P::lane() == lowest(callers.group)));
        if (!may_wait_with(all, pages)) return load_lowest(callers, key, want, frame);
        const Status status = load_each(callers, key, want, frame);
        if (P::lane() == lowest(all)) P::template add<Scope::device>(&pool.shared->together, 0u - pages);
        return status;
    }

    // Whether the callers may wait for so many pages while they hold some of them. Whoever waits without this leave
    // has nothing that others could want room for, so that half of the frames that are never pinned always come free.
    PENSTOCK_ONDEVICE bool may_wait_with(Lanes all, u32 pages) const {
        const u32 leader = lowest(all);
        u32 mine = 0;
        if (P::lane() == leader) {
            u32* const word = &pool.shared->together;
            u32 taken = P::template load<Scope::device>(word);
            while (mine == 0 && pages <= together && taken <= together - pages)
                mine = P::template swap_if<Scope::device>(word, taken, taken + pages) ? 1 : 0;
        }
        return P::from(all, mine, leader) != 0;
    }

    // Pages that are here are given now, and without any the first caller's is loaded, by all lanes; the others' turn
    // comes later.
    PENSTOCK_ONDEVICE_SLOW Status load_lowest(const Callers& callers, u64 key, const Want& want, u32& frame) const {
        const Lanes all = callers.all;
        if (P::ballot(all, frame != kNoFrame) != 0) return frame != kNoFrame ? Status::ok : Status::busy;
        const u32 first = lowest(all);
        const u32 references = P::from(all, want.references, first);
        u32 there = kNoFrame;
        const Status status = this->load(all, P::from(all, key, first), {references, want.deadline}, there);
        if (!(callers.group >> first & 1)) return Status::busy;
        frame = there;
        return status;
    }

    // All pages that are missing, each begun before any is waited for.
    PENSTOCK_ONDEVICE_SLOW Status load_each(const Callers& callers, u64 key, const Want& want, u32& frame) const {
        const Lanes all = callers.all;
        const bool missing = frame == kNoFrame;
        Status status = Status::ok;
        if (missing) status = this->start(callers.group, key, want, frame, Hold::references);
        Lanes waiting = P::ballot(all, missing && status == Status::ok);
        while (waiting != 0) {
            const u32 turn = lowest(waiting);
            const Lanes theirs = P::from(all, callers.group, turn);
            const u64 wanted = P::from(all, key, turn);
            u32 there = P::from(all, frame, turn);
            const Status found = this->finish(all, wanted, {count(theirs), want.deadline}, there);
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
        const u64 key = pool.directory.key(frame);
        return key != kNoKey && key >= first && key - first < pages;
    }

    // Whether a page of the range is no longer in this frame.
    PENSTOCK_ONDEVICE bool dropped(u32 frame, u64 first, u64 pages) const {
        if (!within(frame, first, pages)) return true;
        if (State::claim(pool.frame(frame)) != State::Claim::taken) return !within(frame, first, pages);
        if (!within(frame, first, pages)) {
            State::change(pool.frame(frame), kBusy, 0, 0);
            return true;
        }
        this->evict(frame);
        pool.directory.give(frame);
        return true;
    }

    PENSTOCK_ONDEVICE bool taken_pin(u32 frame) const {
        u32* const note = &pool.frame(frame).note;
        u32 pins = P::template load<Scope::device>(note);
        while (pins != 0) {
            if (P::template swap_if<Scope::device>(note, pins, pins - 1)) return true;
        }
        return false;
    }
};

}  // namespace penstock::ondevice
