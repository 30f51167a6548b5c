// A stored array that a GPU thread reads and writes as if it were in memory: a view over a page cache, for data of any
// size. Several arrays share one cache; the number in the key tells them apart.
//
// An index past the end, and a store to an array that is read only, are statuses and touch nothing. A read never makes
// a page dirty. Items never straddle pages: an item's size divides the page's.
#pragma once

#include "penstock/ondevice/page_cache.hpp"

namespace penstock::ondevice {

// Where copies of several items begin, and how many there are.
struct Run {
    u64 first;
    u64 items;
};

template <class T, class Cache>
class CachedArray {
  public:
    // `status`, if given, takes the first failure of operator[], which cannot return one. Callers share its word.
    struct Options {
        u32 number;  // by which the store knows the array
        u64 items;
        u64 wait_ns;  // the longest one operation waits for a page
        bool writable;
        int* status;
    };

    // Requires: the cache stays where it is while the array is used.
    PENSTOCK_ONDEVICE CachedArray(const Cache& cache, const Options& options)
        : quick_(cache.hits()), cache_(&cache), options_(options) {}
    PENSTOCK_ONDEVICE ~CachedArray() {
        if (hits_ != 0) Cache::Platform::tick(&quick_.own_counts().tally.hits, u64{hits_});
    }
    CachedArray(const CachedArray&) = delete;
    CachedArray& operator=(const CachedArray&) = delete;

    PENSTOCK_ONDEVICE u64 size() const { return options_.items; }
    PENSTOCK_ONDEVICE u64 page_items() const { return quick_.page_bytes / sizeof(T); }

    PENSTOCK_ONDEVICE Status load(u64 index, T& value) const {
        if (index >= options_.items) return Status::out_of_range;
        const u32 shift = item_shift();
        return with_short(index >> shift, [&](const T* items) { value = items[index & ((u64{1} << shift) - 1)]; });
    }
    PENSTOCK_ONDEVICE Status store(u64 index, const T& value) const { return copy_in({index, 1}, &value); }

    // Copies items one after another, page by page. The caller alone copies; see load_tile for lanes together.
    PENSTOCK_ONDEVICE Status copy_out(const Run& run, T* to) const {
        return each_page(run, false, [&](T* items, u64 done, u64 count) {
            for (u64 item = 0; item < count; ++item) to[done + item] = items[item];
        });
    }
    PENSTOCK_ONDEVICE Status copy_in(const Run& run, const T* from) const {
        if (!options_.writable) return Status::read_only;
        return each_page(run, true, [&](T* items, u64 done, u64 count) {
            for (u64 item = 0; item < count; ++item) items[item] = from[done + item];
        });
    }

    // Copies items by a team: all callers, `member` of `members`, ask for the same items, and each copies its share of
    // every page. The team synchronises itself before a member reads what others copied.
    PENSTOCK_ONDEVICE Status load_tile(const Run& run, T* to, u32 member, u32 members) const {
        return each_page(run, false, [&](T* items, u64 done, u64 count) {
            for (u64 item = member; item < count; item += members) to[done + item] = items[item];
        });
    }

    // Calls `use(items, done, count)` with the items where they lie in the cache, page by page, without a copy. The
    // items stay there until `use` returns.
    template <class Use>
    PENSTOCK_ONDEVICE Status visit_tile(const Run& run, const Use& use) const {
        return each_page(run, false, [&](const T* items, u64 done, u64 count) { use(items, done, count); });
    }

    // Rows of `row_items` items. The caller copies `rows[member]`, `rows[member + members]`, ...
    struct Rows {
        const u64* rows;
        u64 count;
        u64 row_items;
    };
    PENSTOCK_ONDEVICE Status gather(const Rows& wanted, T* to, u32 member, u32 members) const {
        Status first = Status::ok;
        for (u64 row = member; row < wanted.count; row += members) {
            const u64 at = wanted.rows[row];
            const bool inside = wanted.row_items != 0 && at < options_.items / wanted.row_items;
            const Status status = inside
                                      ? copy_out({at * wanted.row_items, wanted.row_items}, to + row * wanted.row_items)
                                      : Status::out_of_range;
            if (first == Status::ok) first = status;
        }
        return first;
    }

    // Begins to load the pages of these items and does not wait for them.
    PENSTOCK_ONDEVICE Status prefetch(const Run& run) const {
        if (!inside(run)) return Status::out_of_range;
        Status first = Status::ok;
        const u64 end = run.first + run.items;
        for (u64 at = run.first; at < end; at = (at / page_items() + 1) * page_items()) {
            const Status status = cache_->prefetch(key_of(options_.number, at / page_items()), deadline());
            if (first == Status::ok) first = status;
        }
        return first;
    }

    // array[i] as a value. A failed load gives T{}, a failed store does nothing, and Options::status takes the failure.
    class Item {
      public:
        PENSTOCK_ONDEVICE Item(const CachedArray& array, u64 index) : array_(array), index_(index) {}
        PENSTOCK_ONDEVICE operator T() const {
            T value{};
            array_.noted(array_.load(index_, value));
            return value;
        }
        PENSTOCK_ONDEVICE const Item& operator=(const T& value) const {
            array_.noted(array_.store(index_, value));
            return *this;
        }
        PENSTOCK_ONDEVICE const Item& operator=(const Item& other) const { return *this = static_cast<T>(other); }

      private:
        const CachedArray& array_;
        u64 index_;
    };
    PENSTOCK_ONDEVICE Item operator[](u64 index) const { return Item(*this, index); }

  private:
    PENSTOCK_ONDEVICE u64 deadline() const { return Cache::Platform::now_ns() + options_.wait_ns; }
    PENSTOCK_ONDEVICE bool inside(const Run& run) const {
        return run.first <= options_.items && run.items <= options_.items - run.first;
    }

    // A page, and how the call for it ended. `here`: all lanes that called together have their pages.
    struct Visit {
        Lanes all, group;
        u64 key;
        u32 frame;
        bool here;
    };
    // Counts hits in the thread, and the destructor adds them up: even an addition that no thread waits for is slow if
    // all threads make one at each hit.
    PENSTOCK_ONDEVICE Visit ask(u64 page) const {
        Visit visit{Cache::Platform::active(), 0, key_of(options_.number, page), kNoFrame, false};
        const auto found_one = [&] {
            if (++hits_ == 0) Cache::Platform::tick(&quick_.own_counts().tally.hits, u64{1} << 32);
        };
        visit.here = quick_.all_here({visit.all, visit.key}, found_one, visit.group, visit.frame);
        return visit;
    }
    PENSTOCK_ONDEVICE T* items_of(u32 frame) const { return reinterpret_cast<T*>(quick_.bytes_of(frame)); }

    // Calls `use(items)` with the items of a page, and holds the page meanwhile. `rounds` is for what is slow and rare,
    // and lies in memory.
    template <class Use>
    PENSTOCK_ONDEVICE Status with_visit(const Visit& visit, bool stores, const Use& use) const {
        u32 frame = visit.frame;
        typename Cache::Rounds rounds;
        if (!visit.here) rounds = {visit.all, visit.group, visit.key, deadline(), frame, Status::pending};
        for (bool got = visit.here;;) {
            if (got) {
                use(items_of(frame));
                quick_.release(frame, stores);
            }
            if (visit.here) return Status::ok;
            const auto round = cache_->next_round(rounds);
            if (round == Cache::Round::over) return rounds.status;
            got = round == Cache::Round::got;
            if (got) frame = rounds.frame;
        }
    }

    // with_visit for a `use` that is short and whose lanes stay together. The compiler makes `use` twice, so that a hit
    // does not pass through the code that waits.
    template <class Use>
    PENSTOCK_ONDEVICE Status with_short(u64 page, const Use& use) const {
        const Visit visit = ask(page);
        if (!visit.here) return with_visit(visit, false, use);
        use(items_of(visit.frame));
        quick_.release_of(visit.all, visit.group, visit.frame);
        return Status::ok;
    }

    // The base-2 logarithm of a page's items, because divisions are slow. Both sizes are powers of two.
    PENSTOCK_ONDEVICE u32 item_shift() const { return lowest(static_cast<u32>(quick_.page_bytes / sizeof(T))); }

    // Calls `use(items, done, count)` with the items of each page in turn, and holds that page meanwhile.
    template <class Use>
    PENSTOCK_ONDEVICE Status each_page(const Run& run, bool stores, const Use& use) const {
        if (!inside(run)) return Status::out_of_range;
        const u32 shift = item_shift();
        const u64 each = u64{1} << shift;
        for (u64 done = 0; done < run.items;) {
            const u64 at = run.first + done, place = at & (each - 1);
            const u64 rest = each - place;
            const u64 count = rest < run.items - done ? rest : run.items - done;
            const Status status = with_visit(ask(at >> shift), stores,
                                             [&](T* items) { use(items + place, done, count); });
            if (status != Status::ok) return status;
            done += count;
        }
        return Status::ok;
    }

    PENSTOCK_ONDEVICE void noted(Status status) const {
        if (status == Status::ok || options_.status == nullptr) return;
        u32* const word = reinterpret_cast<u32*>(options_.status);
        u32 none = 0;
        Cache::Platform::template swap_if<Scope::device>(word, none, static_cast<u32>(status));
    }

    static_assert((sizeof(T) & (sizeof(T) - 1)) == 0 && sizeof(T) <= 512, "an item may not straddle pages");

    typename Cache::Hits quick_;
    const Cache* cache_;
    Options options_;
    mutable u32 hits_ = 0;
};

}  // namespace penstock::ondevice
