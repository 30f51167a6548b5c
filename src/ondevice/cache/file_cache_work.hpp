// What the library's own kernels do to stored arrays, for the GPU and for host threads alike. `worker` of `workers`
// does its share; on a GPU a worker is a warp, whose lanes call together.
//
// Rows and ranges are bytes, so that one task serves arrays of any type. The outcome keeps the first failure, with its
// row or page. A failure ends its worker's part of the work; the other workers go on. Lanes of a warp that a branch has
// left apart may be at different rows: the lanes with the same place to copy to copy together.
#pragma once

#include "ondevice/cache/row_order.hpp"
#include "penstock/ondevice/cache/reuse.hpp"
#include "penstock/ondevice/cache_memory.hpp"
#include "penstock/ondevice/stored_array.hpp"

namespace penstock::ondevice {

enum class CacheTask : u32 {
    gather,      // rows[0..count) of row_bytes each, row 0 at byte `first`, to `memory` one after another
    scatter,     // the same from `memory`
    read,        // bytes [first, first + count) to `memory`
    write,       // the same from `memory`
    prefetch,    // begins pages [first, first + count): as many as there are slots may be under way at the end
    pin,         // pins these pages, whose pins were promised; `done` takes how many each worker pinned
    unpin,       // unpins these pages; with `done`, that many of each worker's
    write_back,  // every dirty page
    commit,      // by the first worker
    invalidate,  // pages, by the first worker
    promise,     // `count` pins, by the first worker
    take_back,   // `count` promised pins, by the first worker
    advise,      // the advice `first`, by the first worker
    keep,        // the range of pages that Replacement::pinned_range keeps, by the first worker
    failure,     // takes the failure of users' kernels as the outcome, by the first worker, in one step: they go on
    settle,      // finishes loads that no caller waits for, by the first worker
    format,      // empties the cache, before its first use
    gather_mapped,  // gather, of an array in a mapping that no caller writes: see MappedRows
    order_count,    // the steps of RowOrder, before a gather that has an order
    order_begin,
    order_place,
};

constexpr bool is_of_order(CacheTask task) {
    return task == CacheTask::order_count || task == CacheTask::order_begin || task == CacheTask::order_place;
}

// What is copied where a row's page is missing.
enum class Fetch : u32 { automatic, pages, rows };

// The first failure; status ok: none. It lies in the device's memory, because exchanges do not work across every link.
// Also the time that the first worker took by both of the device's clocks: cycles, which waits are counted in, and ns.
struct CacheOutcome {
    u32 status;
    u32 reserved;
    u64 where;
    u64 cycles;
    u64 ns;
    u64 given;  // rows, or pages of a write, that workers have taken
    u64 fetched;  // rows of gather_mapped whose pages were missing
};

// How long a worker waits for the sync of an array, which may have far more to do than one page.
PENSTOCK_ONDEVICE u64 sync_wait_ns(u64 wait_ns) {
    constexpr u64 times = 30, most = ~u64{0} >> 1;  // the clock has room above that
    return wait_ns > most / times ? most : wait_ns * times;
}

struct CacheWork {
    const StoredRef* ref = nullptr;
    CacheTask task = CacheTask::read;
    const u64* rows = nullptr;
    u64 first = 0;
    u64 count = 0;
    u64 row_bytes = 0;
    u64 row_limit = 0;  // how many rows there are, if fewer than the file has; 0: as many as it has
    u8* memory = nullptr;
    u32* done = nullptr;
    CacheOutcome* outcome = nullptr;
    Fetch fetch = Fetch::pages;  // of gather_mapped, as the next line
    Reuse<Native> reuse = {};
    RowOrder<Native> order = {};  // of gather and gather_mapped
    u64 rows_at_once = 0;         // that a worker takes; 0: see CacheWorker
    u32 workers = 0;              // at most; 0: as many as are useful
};

template <class P = Native>
struct CacheWorker {
    const CacheWork& work;
    const StoredCache& cache;
    const StoredCache::Hits quick;
    u64 worker;
    u64 workers;

    PENSTOCK_ONDEVICE const StoredRef& ref() const { return *work.ref; }
    PENSTOCK_ONDEVICE u64 deadline() const { return P::now_ns() + ref().wait_ns; }
    PENSTOCK_ONDEVICE u64 key(u64 page) const { return key_of(ref().number, page); }

    PENSTOCK_ONDEVICE bool failed(Status status, u64 where) const {
        if (status == Status::ok) return false;
        u32 none = 0;
        if (P::template swap_if<Scope::device>(&work.outcome->status, none, static_cast<u32>(status)))
            work.outcome->where = where;
        return true;
    }

    PENSTOCK_ONDEVICE void run() const {
        switch (work.task) {
            case CacheTask::gather: return rows(false);
            case CacheTask::scatter: return rows(true);
            case CacheTask::read: return range(false);
            case CacheTask::write: return range(true);
            case CacheTask::prefetch:
            case CacheTask::pin:
            case CacheTask::unpin: return pages();
            case CacheTask::write_back:
                failed(cache.write_back_part(static_cast<u32>(worker), static_cast<u32>(workers),
                                             [this] { return deadline(); }), 0);
                return;
            default:
                if (worker == 0 && P::lane() == 0) alone();
        }
    }

    // Moves bytes [at, at + bytes) of the array to or from `memory`.
    PENSTOCK_ONDEVICE Status move(u64 at, u64 bytes, u8* memory, bool stores) const {
        const u64 end = at + bytes;
        while (at < end) {
            const u64 inside = at % quick.page_bytes;
            const u64 rest = quick.page_bytes - inside;
            const u64 some = end - at < rest ? end - at : rest;
            const Status status = move_in_page(at, some, memory, stores);
            if (status != Status::ok) return status;
            at += some;
            memory += some;
        }
        return Status::ok;
    }

    PENSTOCK_ONDEVICE Status move_in_page(u64 at, u64 bytes, u8* memory, bool stores) const {
        const u64 page = at / quick.page_bytes, inside = at % quick.page_bytes;
        const bool whole = stores && inside == 0 && (bytes == quick.page_bytes || at + bytes == ref().bytes);
        u32 frame = kNoFrame;
        const Status status =
            whole ? cache.overwrite(key(page), deadline(), frame)
                  : cache.acquire_of(quick, {P::active(), key(page)}, [&] { return deadline(); }, frame);
        if (status != Status::ok && status != Status::pending) return status;
        u8* const bytes_there = quick.bytes_of(frame) + inside;
        const Lanes group = P::same(P::active(), reinterpret_cast<u64>(memory));
        if (!stores) {
            copy_together<P>(group, memory, bytes_there, bytes);
        } else {
            copy_together<P>(group, bytes_there, memory, bytes);
            if (status == Status::pending && bytes < quick.page_bytes)
                zero_together<P>(group, bytes_there + bytes, quick.page_bytes - bytes);
        }
        if (status == Status::pending) cache.filled(frame);
        quick.release(frame, stores);
        return Status::ok;
    }

    PENSTOCK_ONDEVICE u64 rows_there() const {
        const u64 held = work.first < ref().bytes ? (ref().bytes - work.first) / work.row_bytes : 0;
        return work.row_limit != 0 && work.row_limit < held ? work.row_limit : held;
    }

    PENSTOCK_ONDEVICE void rows(bool stores) const {
        if (stores && !ref().writable) return static_cast<void>(failed(Status::read_only, 0));
        const u64 all = rows_there(), some = rows_at_once();
        for (u64 first = next_given(some); first < work.count; first = next_given(some)) {
            const u64 end = work.count - first < some ? work.count : first + some;
            for (u64 turn = first; turn < end; ++turn) {
                const u64 row = work.order.row(turn), wanted = work.rows[row];
                const Status status = wanted < all ? move(work.first + wanted * work.row_bytes, work.row_bytes,
                                                          work.memory + row * work.row_bytes, stores)
                                                   : Status::out_of_range;
                if (failed(status, row)) return;
            }
        }
    }

    // How many rows a worker takes at a time: several, so that taking them costs little; and far fewer than its share,
    // so that all workers end together.
    PENSTOCK_ONDEVICE u64 rows_at_once() const {
        constexpr u64 most = 8, turns = 16;
        if (work.rows_at_once != 0) return work.rows_at_once;
        const u64 share = work.count / (workers * turns);
        return share < 1 ? 1 : share < most ? share : most;
    }

    PENSTOCK_ONDEVICE void range(bool stores) const {
        if (stores && !ref().writable) return static_cast<void>(failed(Status::read_only, 0));
        if (work.first > ref().bytes || work.count > ref().bytes - work.first)
            return static_cast<void>(failed(Status::out_of_range, work.first));
        const u64 end = work.first + work.count, first = work.first / quick.page_bytes;
        for (u64 turn = worker;; turn += workers) {
            const u64 page = first + (stores ? next_given(1) : turn);
            if (page * quick.page_bytes >= end) return;
            const u64 from = page * quick.page_bytes < work.first ? work.first : page * quick.page_bytes;
            const u64 next = (page + 1) * quick.page_bytes;
            const u64 to = next < end ? next : end;
            if (failed(move_in_page(from, to - from, work.memory + (from - work.first), stores), page)) return;
        }
    }

    // Takes the next rows or pages for a worker that is ready. If shares were made beforehand, workers that wait would
    // fall behind: rows would wait for the last worker, and a page that is written would not be in the cache, nor leave
    // it, together with those beside it. Of lanes that a branch has left apart, each set takes some.
    PENSTOCK_ONDEVICE u64 next_given(u64 some) const {
        const Lanes all = P::active();
        u64 first = 0;
        if (P::lane() == lowest(all))
            first = P::template add<Scope::device, Order::relaxed>(&work.outcome->given, some);
        return P::from(all, first, lowest(all));
    }

    PENSTOCK_ONDEVICE void pages() const {
        const u64 mine = work.count > worker ? (work.count - worker - 1) / workers + 1 : 0;
        const bool some = work.task == CacheTask::unpin && work.done != nullptr;
        const u64 wanted = some ? work.done[worker] : mine;
        u32 done = 0;
        for (u64 turn = 0; turn < wanted; ++turn, ++done) {
            const u64 page = work.first + worker + turn * workers;
            if (failed(one_page(page), page)) break;
        }
        if (work.task == CacheTask::pin && P::lane() == 0) work.done[worker] = done;
    }

    PENSTOCK_ONDEVICE Status one_page(u64 page) const {
        if (work.task == CacheTask::prefetch) return cache.begin(key(page), deadline());
        const Lanes group = P::same(P::active(), page);
        const u32 leader = lowest(group);
        if (work.task == CacheTask::pin) return cache.pin_promised(group, key(page), deadline());
        const Status status = P::lane() == leader ? cache.unpin(key(page), 1) : Status::ok;
        return agreed<P>(group, status, leader);
    }

    // Invalidates the range. If pages are busy, it first finishes loads that no caller waits for, such as prefetches.
    PENSTOCK_ONDEVICE Status forget() const {
        const Status status = cache.invalidate(key(work.first), work.count);
        if (status != Status::busy) return status;
        const Status settled = cache.settle(deadline());
        return settled == Status::ok ? cache.invalidate(key(work.first), work.count) : settled;
    }

    PENSTOCK_ONDEVICE Status taken_failure() const {
        u32* const word = reinterpret_cast<u32*>(ref().status);
        u32 found = P::template load<Scope::device>(word);
        while (found != 0 && !P::template swap_if<Scope::device>(word, found, 0u)) {
        }
        return static_cast<Status>(found);
    }

    PENSTOCK_ONDEVICE void alone() const {
        const u32 pins = static_cast<u32>(work.count);
        switch (work.task) {
            case CacheTask::commit: failed(cache.commit(P::now_ns() + sync_wait_ns(ref().wait_ns)), 0); break;
            case CacheTask::invalidate: failed(forget(), 0); break;
            case CacheTask::promise: failed(cache.promise_pins(pins), 0); break;
            case CacheTask::take_back: cache.return_pins(pins); break;
            case CacheTask::advise: cache.advise(ref().number, static_cast<Advice>(work.first)); break;
            case CacheTask::keep: PinnedRange::keep(cache.pool(), key(work.first), work.count); break;
            case CacheTask::failure: failed(taken_failure(), 0); break;
            case CacheTask::settle: failed(cache.settle(deadline()), 0); break;
            default: failed(Status::invalid, 0);
        }
    }
};

template <class Share>
PENSTOCK_ONDEVICE void timed_share(const CacheWork& work, u64 worker, const Share& share) {
    const u64 cycles = Native::cycles(), began = Native::now_ns();
    share();
    if (worker == 0 && Native::lane() == 0) {
        work.outcome->cycles = Native::cycles() - cycles;
        work.outcome->ns = Native::now_ns() - began;
    }
}

// Does the whole share of one worker, of any task but gather_mapped.
PENSTOCK_ONDEVICE void do_share(const CacheWork& work, u64 worker, u64 workers) {
    timed_share(work, worker, [&] {
        if (work.task == CacheTask::format) {
            const u64 lanes = count(Native::active());
            format(work.ref->cache.pool(), worker * lanes + rank<Native>(Native::active()), workers * lanes);
        } else {
            CacheWorker<Native>{work, work.ref->cache, work.ref->cache.hits(), worker, workers}.run();
        }
    });
}

// As do_share, of the steps of RowOrder.
PENSTOCK_ONDEVICE void order_share(const CacheWork& work, u64 worker, u64 workers) {
    const u64 lanes = count(Native::active()), threads = workers * lanes;
    const u64 thread = worker * lanes + rank<Native>(Native::active());
    switch (work.task) {
        case CacheTask::order_count: return work.order.count(work.rows, work.count, thread, threads);
        case CacheTask::order_begin: return work.order.begin(thread, threads);
        default: return work.order.place(work.rows, work.count, thread, threads);
    }
}

}  // namespace penstock::ondevice
