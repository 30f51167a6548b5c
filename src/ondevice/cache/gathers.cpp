// Gathers of a FileCache: which bytes are fetched, and in which order the rows are taken. See file_cache.hpp.
#include <algorithm>

#include "ondevice/cache/file_cache.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kSpread = 64 * kMiB;       // of the file, in which rows under way are to lie: see RowOrder
constexpr u64 kFewUnderWay = 1024;       // rows; with fewer, the link would wait for them

}  // namespace

// Rows are fetched by themselves where a page has several, and from a mapping alone: a request of a row would cost as
// much as one of a page. No caller may write the array, so that pages and mapping have the same bytes. Pages that are
// to stay must come first.
void FileCache::choose_fetch(u32 array, CacheWork& work) const {
    if (work.task != CacheTask::gather || options_.fetch == Fetch::pages) return;
    if (!mapped(array) || !read_only_[array] || work.row_bytes * 2 > shape_.page_bytes) return;
    if (options_.fetch == Fetch::automatic && options_.replacement == Replacement::pinned_range) return;
    auto* const counts = reinterpret_cast<u32*>(reuse_.data);
    work.task = CacheTask::gather_mapped;
    work.fetch = options_.fetch;
    work.reuse = {counts, counts + 2, Reuse<Native>::sets_of(shape_.frames),
                  Reuse<Native>::sample_mask_of(shape_.frames)};
}

// In parts, so that an order of the rows takes bounded memory.
FileCache::Failure FileCache::gather(CacheLane& lane, u32 array, CacheWork work) {
    choose_fetch(array, work);
    const bool ordered = pays_to_order(array, work);
    const u64 all = work.count;
    for (u64 first = 0;; first += work.count) {
        work.count = ordered ? std::min(all - first, options_.ordered_at_once) : all;
        work.order = {};
        if (ordered) order_rows(lane, array, work);
        Failure failure = run_on(lane, array, work);
        failure.where += first;
        if (failure.status != Status::ok || first + work.count >= all) return failure;
        work.rows += work.count;
        work.memory += work.count * work.row_bytes;
    }
}

// Rows that lie in the cache need no order. Whether they do, the gather before tells.
bool FileCache::pays_to_order(u32 array, const CacheWork& work) const {
    if (work.task != CacheTask::gather_mapped || work.count < options_.ordered_rows) return false;
    return bytes(array) > options_.unordered_bytes && fetched_[array].load(std::memory_order_relaxed) != 0;
}

// Queues the steps of RowOrder before the gather. Without memory for it the rows keep the order of the list.
void FileCache::order_rows(CacheLane& lane, u32 array, CacheWork& work) {
    RowOrder<Native>& order = work.order;
    while (work.row_bytes << order.shift < RowOrder<Native>::region_bytes ||
           bytes(array) / (work.row_bytes << order.shift) >= RowOrder<Native>::most_regions) {
        ++order.shift;
    }
    if (lane.order.data == nullptr) {
        try {
            lane.order = own_.allocate((options_.ordered_at_once + RowOrder<Native>::most_regions + 1) * sizeof(u32));
        } catch (const Error&) {
            return;
        }
        order_bytes_ += lane.order.bytes;
    }
    order.regions = static_cast<u32>(bytes(array) / (work.row_bytes << order.shift) + 1);
    order.places = reinterpret_cast<u32*>(lane.order.data);
    order.ends = order.places + options_.ordered_at_once;
    lane.stream->fill(order.ends, (order.regions + 1) * sizeof(u32), 0);
    CacheWork step = work;
    for (const CacheTask task : {CacheTask::order_count, CacheTask::order_begin, CacheTask::order_place}) {
        step.task = task;
        launch(device_, *lane.stream, step, workers_for(step));
    }
    ordered_ += work.count;
    keep_close(array, work);
}

// Fewer rows under way where the list is thin: those under way are to lie in less of the file than translations reach.
void FileCache::keep_close(u32 array, CacheWork& work) const {
    const u64 apart = std::max<u64>(1, bytes(array) / work.count);
    const bool is_short = !device_.emulated && work.row_bytes <= kShortRow;
    const u64 at_once = is_short ? ShortMappedRows<Native>::together(work.row_bytes, kWholeWarp) : 1;
    const u64 turns = std::max<u64>(kFewUnderWay, kSpread / apart / at_once);
    work.rows_at_once = std::clamp<u64>(turns / most_workers_, 1, 8);
    work.workers = static_cast<u32>(std::min<u64>(most_workers_, turns / work.rows_at_once));
}

// An eighth of the rows is what an order of all of them costs, or less.
void FileCache::note_fetched(u32 array, const CacheWork& work, u64 fetched) {
    fetched_[array].store(fetched * 8 >= work.count ? 1 : 0, std::memory_order_relaxed);
}

}  // namespace penstock::ondevice
