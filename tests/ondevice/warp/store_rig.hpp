// For tests: a page cache for the lanes of warps (warp_rig.hpp) over the disk of cache_rig.hpp. Each lane copies its
// share of a page, as with a store on a GPU.
#pragma once

#include "ondevice/cache/cache_rig.hpp"
#include "ondevice/warp/warp_rig.hpp"
#include "penstock/ondevice/array.hpp"

namespace penstock::ondevice {

// Where prepared pages wait to be sent, and what happened to them.
struct Outgoing {
    u32 slots = 64;
    u32 drops_each = 0;  // of every so many pages one is reported as written and is not
    u64 stuck = ~0ull;   // the page that never finds room, like a page whose earlier write was not answered
    u64 fails = ~0ull;   // the page whose writes fail
    u64 slow = ~0ull;    // the page whose writes take 200 ms
    u32 write_ns = 64;   // how long other writes take
    u32 used = 0, most = 0, sent = 0;
    std::vector<std::vector<u64>> copies;  // by ticket
    std::vector<u64> keys;                 // in the order in which pages were prepared
    std::vector<u32> by;                   // the warp that prepared each of them
    std::vector<u64> deadlines;            // in the order in which pages were sent
};

struct WarpStore {
    Disk* disk;
    Outgoing* outgoing;
    const u32* permits = nullptr;  // how many permits are out now
    u32* most_permits = nullptr;   // the most that were out at any call of this store

    Status begin(Lanes group, u64 key, void*, u64, u32& ticket) const {
        look();
        return leads(group) ? unseen([&] { return disk->begin(key, ticket); }) : Status::ok;
    }
    Status test(Lanes group, u32 ticket, u64 key, void* page) const {
        look();
        Status status = Status::pending;
        std::vector<u64> words(disk->words());
        if (leads(group)) status = unseen([&] { return disk->test(ticket, key, words.data()); });
        status = static_cast<Status>(Warped::from(group, static_cast<int>(status), lowest(group)));
        for (u64 place = rank<Warped>(group); status == Status::ok && place < words.size(); place += count(group))
            static_cast<u64*>(page)[place] = disk->word(key, place);
        return status;
    }
    // Lanes may store to the page meanwhile.
    Status prepare(Lanes group, u64 key, const void* page, u64, u32& ticket) const {
        if (!leads(group)) return Status::ok;
        return unseen([&] {
            Outgoing& out = *outgoing;
            if (out.used == out.slots || key == out.stuck) return Status::busy;
            out.most = std::max(out.most, ++out.used);
            ticket = static_cast<u32>(out.copies.size());
            const auto* const words = static_cast<const u64*>(page);
            out.copies.emplace_back(words, words + disk->words());
            out.keys.push_back(key);
            out.by.push_back(Warped::caller());
            return Status::ok;
        });
    }
    Status send(u64 key, u32 ticket, u64 deadline) const {
        Warped::pause(key == outgoing->slow ? 200'000'000 : outgoing->write_ns);  // other lanes go on meanwhile
        return unseen([&] {
            Outgoing& out = *outgoing;
            --out.used;
            out.deadlines.push_back(deadline);
            if (key == out.fails) return Status::io_error;
            if (out.drops_each != 0 && ++out.sent % out.drops_each == 0) return Status::ok;
            return disk->put(key, out.copies[ticket].data());
        });
    }
    Status commit(Lanes group, u64) const {
        return leads(group) ? unseen([&] { return disk->commit(); }) : Status::ok;
    }

  private:
    void look() const {
        const Unseen unseen;
        if (permits != nullptr && *permits > *most_permits) *most_permits = *permits;
    }
    static bool leads(Lanes group) { return Warped::lane() == lowest(group); }
    template <class Do>
    static Status unseen(const Do& action) {
        const Unseen unseen;
        return action();
    }
};

using WarpCaches = CacheRig<SweepResistant, Warped, WarpStore>;
using WarpNumbers = CachedArray<u64, WarpCaches::Cache>;

// Warps that use one array over one cache.
struct WarpUsers {
    static constexpr u32 kAsMade = ~0u - 1;  // the number that a cache of so many frames has
    struct Plan {
        Warps::Options warps;
        u32 frames = 4;
        u32 together = kAsMade;  // how many permits there are
        u64 wait_ms = 100;
        u32 pages = 24;
    };
    static constexpr u32 kPage = 512;
    static constexpr u64 kPageItems = kPage / 8;

    explicit WarpUsers(const Plan& made)
        : plan(made),
          disk(made.pages, kPage),
          rig(shape_of(made.frames, kPage), WarpStore{&disk, &outgoing}),
          warps(made.warps) {}

    WarpCaches::Cache cache() {
        const Unseen unseen;
        auto cache = rig.cache();
        if (plan.together != kAsMade) cache.together = plan.together;
        cache.store().permits = &cache.pool().shared->together;
        cache.store().most_permits = &most_permits;
        return cache;
    }
    u64 items() const { return plan.pages * kPageItems; }
    // Runs `body(numbers, warp, lane)` on every lane.
    template <class Body>
    void run(const Body& body) {
        const auto cache = this->cache();
        warps.run([&](u32 warp, u32 lane) {
            const WarpNumbers numbers(cache, {0, items(), plan.wait_ms * 1'000'000, true, nullptr});
            body(numbers, warp, lane);
        });
    }
    // Whether all references, permits and frames were given back.
    bool nothing_left() {
        return rig.references() == 0 && rig.still().shared->together == 0 && rig.every_frame_is_somewhere_once() &&
               disk.misused == 0 && outgoing.used == 0;
    }
    // Runs `action(cache)` on one lane alone, and returns its status.
    template <class Action>
    Status alone(const Action& action) {
        Status status = Status::pending;
        Warps one({1, 1, 1, false});
        const auto cache = this->cache();
        one.run([&](u32, u32) { status = action(cache); });
        return status;
    }
    Status flush() {
        return alone([](const auto& cache) { return cache.flush(~0ull); });
    }
    Status settle() {
        return alone([](const auto& cache) { return cache.settle(~0ull); });
    }

    Plan plan;
    u32 most_permits = 0;
    Disk disk;
    Outgoing outgoing;
    WarpCaches rig;
    Warps warps;
};

// Random numbers of one lane, from its place and the seed.
class LaneDraws {
  public:
    LaneDraws(u64 seed, u32 warp, u32 lane) : state_(seed * 1000003 + warp * 64 + lane + 1) { below(2); }
    u64 below(u64 limit) {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        return (state_ >> 33) % limit;
    }

  private:
    u64 state_;
};

}  // namespace penstock::ondevice
