// gather_mapped: rows of an array in a mapping, with and past the page cache, for the GPU and for host threads alike.
#pragma once

#include "ondevice/cache/file_cache_work.hpp"

namespace penstock::ondevice {

// gather, of an array that lies in a mapping and is not written. A row whose page is missing is copied by itself, where
// a page would not be used again. No caller stores to the array's pages, so page and mapping have the same bytes.
//
// The lanes that come go through a row together, so that no branch leaves some of them behind.
template <class P = Native>
struct MappedRows {
    CacheWorker<P> own;
    Lanes lanes;
    // Pieces of rows whose pages were missing; one lane of each counts it. A worker adds them up and tells at the end:
    // a word that all add to for each row would bound how many rows can come.
    struct Fetched {
        u32 pieces = 0;
        u64 bytes = 0;
    };

    PENSTOCK_ONDEVICE void run() const {
        Fetched fetched;
        const u64 all = own.rows_there(), some = own.rows_at_once();
        bool good = true;
        for (u64 first = own.next_given(some); good && first < own.work.count; first = own.next_given(some)) {
            const u64 end = own.work.count - first < some ? own.work.count : first + some;
            good = take(first, end, {all, by_pages()}, fetched);
        }
        note(fetched);
    }

    struct RowsFetch {
        u64 rows_there;
        bool pages;
    };
    // One row after the other. False: one failed, and the next ones were not begun.
    PENSTOCK_ONDEVICE bool take(u64 turn, u64 end, const RowsFetch& how, Fetched& fetched) const {
        for (; turn < end; ++turn) {
            const u64 row = own.work.order.row(turn), wanted = own.work.rows[row];
            u8* const memory = own.work.memory + row * own.work.row_bytes;
            const Status status = wanted < how.rows_there ? move(wanted, memory, how, fetched) : Status::out_of_range;
            if (own.failed(status, row)) return false;
        }
        return true;
    }

    PENSTOCK_ONDEVICE bool by_pages() const {
        if (own.work.fetch != Fetch::automatic) return own.work.fetch == Fetch::pages;
        return own.work.reuse.pays(own.work.row_bytes, own.quick.page_bytes);
    }

    PENSTOCK_ONDEVICE const u8* mapping() const { return own.cache.store().arrays[own.ref().number].mapping; }

    // A piece of a row was copied past the cache.
    PENSTOCK_ONDEVICE void count_piece(u64 at, u64 bytes, Fetched& fetched) const {
        ++fetched.pieces;
        fetched.bytes += bytes;
        const auto& store = own.cache.store();
        if (!store.in_one_file(own.ref().number)) store.count_rows(own.ref().number, at, {1, bytes});
    }

    PENSTOCK_ONDEVICE void note(const Fetched& fetched) const {
        if (fetched.pieces == 0) return;
        P::tick(&own.work.outcome->fetched, u64{fetched.pieces});
        const auto& store = own.cache.store();
        if (store.in_one_file(own.ref().number)) store.count_rows(own.ref().number, 0, {fetched.pieces, fetched.bytes});
    }

  private:
    struct RowPiece {
        u64 at, bytes;
        u8* memory;
    };
    // Brings the page. By itself, so that rows that need none keep what they use in registers.
    static PENSTOCK_ONDEVICE_SLOW Status bring(const CacheWork& work, RowPiece piece) {
        const StoredCache& cache = work.ref->cache;
        return CacheWorker<P>{work, cache, cache.hits(), 0, 1}.move_in_page(piece.at, piece.bytes, piece.memory, false);
    }

    PENSTOCK_ONDEVICE Status move(u64 row, u8* memory, const RowsFetch& how, Fetched& fetched) const {
        u64 at = own.work.first + row * own.work.row_bytes;
        const u64 end = at + own.work.row_bytes;
        while (at < end) {
            const u64 rest = own.quick.page_bytes - at % own.quick.page_bytes;
            const u64 some = end - at < rest ? end - at : rest;
            const u64 key = own.key(at / own.quick.page_bytes);
            Lanes group = 0;
            u32 frame = kNoFrame;
            own.quick.all_here({lanes, key}, [this] { own.quick.count_one(&Tally::hits); }, group, frame);
            if (P::lane() == lowest(lanes)) own.work.reuse.use(key);
            const bool here = frame != kNoFrame;
            if (!here && how.pages) {
                if (P::lane() == lowest(lanes)) ++fetched.pieces;
                const Status status = bring(own.work, {at, some, memory});
                if (status != Status::ok) return status;
            } else {
                const u64 inside = at % own.quick.page_bytes;
                copy_together<P>(lanes, memory, here ? own.quick.bytes_of(frame) + inside : mapping() + at, some);
                if (here) own.quick.release_of(lanes, group, frame);
                else if (P::lane() == lowest(lanes)) count_piece(at, some, fetched);
            }
            at += some;
            memory += some;
        }
        return Status::ok;
    }
};

constexpr u64 kShortRow = 256;  // bytes: half of what a warp copies at once

// As MappedRows, of rows that are shorter than what the lanes copy at once: several rows at a time, of some lanes each.
// A row is a place to look up and a wait for the link, whatever its length.
template <class P = Native>
struct ShortMappedRows {
    MappedRows<P> one_by_one;
    u32 at_once;  // rows; the number of lanes is a multiple

    // As many rows as `lanes` copy at once by 16 bytes each; 1: MappedRows is as good.
    static PENSTOCK_ONDEVICE u32 together(u64 row_bytes, Lanes lanes) {
        u32 rows = 1;
        const u32 all = count(lanes);
        while (2 * rows <= all && all % (2 * rows) == 0 && 2 * rows * row_bytes <= all * 16ull) rows *= 2;
        return rows;
    }

    PENSTOCK_ONDEVICE void run() const {
        const CacheWorker<P>& own = one_by_one.own;
        const Lanes lanes = one_by_one.lanes;
        const u64 all = own.rows_there(), some = own.rows_at_once() * at_once;
        const u32 width = count(lanes) / at_once, mine = rank<P>(lanes) / width;
        typename MappedRows<P>::Fetched fetched;
        bool good = true;
        for (u64 first = own.next_given(some); good && first < own.work.count; first = own.next_given(some)) {
            const u64 end = own.work.count - first < some ? own.work.count : first + some;
            if (one_by_one.by_pages()) {
                good = one_by_one.take(first, end, {all, true}, fetched);
                continue;
            }
            for (u64 turn = first; good && turn < end; turn += at_once)
                good = take(turn + mine, end, all, fetched);
        }
        one_by_one.note(fetched);
    }

  private:
    // All lanes call; those of one row with the same `turn`. False, for all: a row failed.
    PENSTOCK_ONDEVICE bool take(u64 turn, u64 end, u64 all, typename MappedRows<P>::Fetched& fetched) const {
        const CacheWorker<P>& own = one_by_one.own;
        const bool is_row = turn < end;
        const u64 row = is_row ? own.work.order.row(turn) : 0, wanted = is_row ? own.work.rows[row] : 0;
        const bool is_there = is_row && wanted < all;
        if (is_row && !is_there) own.failed(Status::out_of_range, row);
        u8* memory = own.work.memory + row * own.work.row_bytes;
        u64 at = own.work.first + wanted * own.work.row_bytes;
        const u64 end_of_row = is_there ? at + own.work.row_bytes : at;
        const Lanes with = P::ballot(one_by_one.lanes, is_there);
        while (P::ballot(one_by_one.lanes, at < end_of_row) != 0) {  // a row has at most two pages
            if (at < end_of_row) {
                const u64 rest = own.quick.page_bytes - at % own.quick.page_bytes;
                const u64 some = end_of_row - at < rest ? end_of_row - at : rest;
                move_piece(at, some, memory, fetched);
                at += some;
                memory += some;
            }
            P::sync(one_by_one.lanes);
        }
        return P::ballot(one_by_one.lanes, is_row) == with;
    }

    // Lanes that found their page give it back before others copy.
    PENSTOCK_ONDEVICE void move_piece(u64 at, u64 bytes, u8* memory, typename MappedRows<P>::Fetched& fetched) const {
        const CacheWorker<P>& own = one_by_one.own;
        const Lanes here = P::active(), row = P::same(here, reinterpret_cast<u64>(memory));
        const bool first = P::lane() == lowest(row);
        const Lanes firsts = P::ballot(here, first);
        const u64 key = own.key(at / own.quick.page_bytes);
        Lanes group = 0;
        u32 frame = kNoFrame;
        own.quick.all_here({here, key}, [&own] { own.quick.count_one(&Tally::hits); }, group, frame);
        if (P::lane() == lowest(group)) own.work.reuse.use(key, count(firsts & group));
        const bool is_here = frame != kNoFrame;
        const u64 inside = at % own.quick.page_bytes;
        copy_together<P>(row, memory, is_here ? own.quick.bytes_of(frame) + inside : one_by_one.mapping() + at, bytes);
        if (is_here) own.quick.release(frame);
        else if (first) one_by_one.count_piece(at, bytes, fetched);
    }
};

// As do_share, of gather_mapped, whose kernels keep their registers for themselves: one for short rows, of which a warp
// copies several at once.
PENSTOCK_ONDEVICE void gather_share(const CacheWork& work, u64 worker, u64 workers) {
    timed_share(work, worker, [&] {
        MappedRows<Native>{{work, work.ref->cache, work.ref->cache.hits(), worker, workers}, Native::active()}.run();
    });
}

PENSTOCK_ONDEVICE void gather_short_share(const CacheWork& work, u64 worker, u64 workers) {
    const Lanes lanes = Native::active();
    timed_share(work, worker, [&] {
        ShortMappedRows<Native>{{{work, work.ref->cache, work.ref->cache.hits(), worker, workers}, lanes},
                                ShortMappedRows<Native>::together(work.row_bytes, lanes)}.run();
    });
}

}  // namespace penstock::ondevice
