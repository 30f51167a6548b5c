// Device code that uses a page cache over NVMe queues, for tests. Every word of the namespace has one owner among the
// lanes of all clients, which alone stores to it and so knows what it holds. Threads of the host, each a warp of one
// lane, and warps of a GPU run the same source.
//
// A word tells its place and a version, so its owner sees bytes of another page, torn bytes and lost stores. At the end
// the host compares the namespace with the versions.
#pragma once

#include "ondevice/nvme/nvme_rings.hpp"
#include "penstock/ondevice/cache_memory.hpp"
#include "penstock/ondevice/file_store.hpp"
#include "penstock/ondevice/page_cache.hpp"

namespace penstock::ondevice {

PENSTOCK_ONDEVICE constexpr u64 cell_word(u64 index, u32 version) { return u64{version} << 32 | index; }

struct CacheClientTally {
    u32 uses;
    u32 stores;
    u32 wrong;    // words that are not what their owner stored
    u32 refused;  // uses that got no page
};

enum class CacheClientWork : u32 { format, use, flush };

struct CacheClientPlan {
    CacheClientWork work;
    CacheShape shape;
    void* states;
    u8* pages;
    NvmeRingsRef<Native> rings;
    const StoreArray* array;
    u32 clients;
    u32 lanes;      // that each client has
    u32 witnessed;  // on a GPU: exchanges between lanes carry their place in the program
    u32 rounds;
    u64 wait_ns;
    u32* versions;  // one for each word; its owner alone touches it
    CacheCounts* counts;
    CacheClientTally* tally;
};

template <class P = Native>
class CacheClient {
  public:
    using Rings = NvmeRingsRef<P>;
    using Store = FileStore<P, Rings>;
    using Cache = PageCacheRef<P, Store>;

    PENSTOCK_ONDEVICE CacheClient(const CacheClientPlan& plan, u32 client)
        : plan_(plan), self_(client * plan.lanes + P::lane()) {
        cache_.hits() = {pool_of<P>(plan.shape, plan.states), plan.pages, plan.shape.page_bytes, plan.counts + client};
        // Rings of all platforms hold the same.
        static_assert(sizeof(NvmeRingRef<P>) == sizeof(NvmeRingRef<Native>));
        const auto* const rings = reinterpret_cast<const NvmeRingRef<P>*>(plan.rings.rings);
        cache_.store() = {Rings{rings, plan.rings.count, plan.rings.each, 0}, plan.array, 1, plan.shape.page_bytes};
        cache_.store().channel.hint = client;
        cache_.quota = plan.shape.frames - plan.shape.frames / 4;
        cache_.together = together_of(plan.shape.frames, cache_.quota);
    }

    PENSTOCK_ONDEVICE void run() {
        if (plan_.work == CacheClientWork::format) return format(cache_.pool(), self_, plan_.clients * plan_.lanes);
        if (plan_.work == CacheClientWork::flush) return flush();
        for (u32 round = 0; round < plan_.rounds; ++round) use(round);
    }

  private:
    PENSTOCK_ONDEVICE void flush() const {
        if (self_ != 0) return;
        const u64 deadline = P::now_ns() + plan_.wait_ns;
        while (cache_.flush(deadline) != Status::ok) {
            if (P::now_ns() >= deadline) return count(&plan_.tally->refused);
        }
    }

    // Lanes of a warp want different pages. A lane that got its page gives it back before the others' turn comes.
    PENSTOCK_ONDEVICE void use(u32 round) const {
        const u64 owners = u64{plan_.clients} * plan_.lanes, words = plan_.array->bytes / sizeof(u64);
        const u64 draw = (u64{round} * 2654435761u + self_ * u64{40503}) * 0x9e3779b97f4a7c15ull >> 33;
        const u64 index = draw % (words / owners) * owners + self_;
        const Lanes all = P::active();
        typename Cache::Rounds rounds{all, 0, index / each(), P::now_ns() + plan_.wait_ns, 0, Status::pending};
        if (cache_.hits().all_here({all, rounds.key}, [] {}, rounds.group, rounds.frame))
            return use(rounds.frame, index, draw % 3 == 0);
        for (;;) {
            const auto now = cache_.next_round(rounds);
            if (now == Cache::Round::over) break;
            if (now == Cache::Round::got) use(rounds.frame, index, draw % 3 == 0);
        }
        if (rounds.status != Status::ok) count(&plan_.tally->refused);
    }

    PENSTOCK_ONDEVICE void use(u32 frame, u64 index, bool stores) const {
        u64* const word = static_cast<u64*>(cache_.page(frame)) + index % each();
        const u64 seen = P::template load<Scope::device, Order::relaxed>(word);
        if (seen != cell_word(index, plan_.versions[index])) count(&plan_.tally->wrong);
        if (stores) {
            plan_.versions[index] += 1;
            const u64 next = cell_word(index, plan_.versions[index]);
            P::template store<Scope::device, Order::relaxed>(word, next);
            count(&plan_.tally->stores);
        }
        cache_.release(frame, stores);
        count(&plan_.tally->uses);
    }

    PENSTOCK_ONDEVICE u64 each() const { return plan_.shape.page_bytes / sizeof(u64); }
    PENSTOCK_ONDEVICE static void count(u32* counter) { P::template add<Scope::device>(counter, 1u); }

    const CacheClientPlan& plan_;
    u32 self_;
    Cache cache_;
};

}  // namespace penstock::ondevice
