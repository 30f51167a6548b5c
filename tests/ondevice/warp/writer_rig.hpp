// For tests: a warp that stores to pages of a cache of its own, step by step.
#pragma once

#include <gtest/gtest.h>

#include "ondevice/warp/store_rig.hpp"

namespace penstock::ondevice {

constexpr u32 kWriterLanes = 4;

// One warp over a cache of its own, step by step.
template <class Policy>
struct OneWriter {
    explicit OneWriter(u32 frames) : rig(shape_of(frames, WarpUsers::kPage), WarpStore{&disk, &out}) {}

    // Runs `action(cache)` on all lanes together, and returns the first lane's status.
    template <class Action>
    Status together(const Action& action) {
        Status said = Status::pending;
        Warps warp({1, kWriterLanes, 1, false});
        const auto cache = rig.cache();
        warp.run([&](u32, u32 lane) {
            const Status status = action(cache);
            if (lane == 0) said = status;
        });
        return said;
    }
    void store(u64 key) {
        const Status status = together([&](const auto& cache) {
            u32 frame = kNoFrame;
            const Status got = cache.overwrite(key, kEver, frame);
            if (got != Status::pending && got != Status::ok) return got;
            if (Warped::lane() == 0)
                for (u64 i = 0; i < WarpUsers::kPageItems; ++i) set_word(cache.page(frame), i, word_of(key, i, 1));
            if (got == Status::pending) cache.filled(frame);
            cache.release(frame, true);
            return Status::ok;
        });
        ASSERT_EQ(status, Status::ok) << key;
    }
    void touch(u64 key) {
        const Status status = together([&](const auto& cache) {
            u32 frame = kNoFrame;
            const Status got = cache.acquire(key, kEver, frame);
            if (got == Status::ok) cache.release(frame);
            return got;
        });
        ASSERT_EQ(status, Status::ok) << key;
    }
    Status flush() {
        const Status status = together([](const auto& cache) { return cache.write_back_part(0, 1, kEver); });
        return status;
    }
    bool written(u64 key) const { return disk.word(key, 3) == word_of(key, 3, 1); }

    Disk disk{64, WarpUsers::kPage};
    Outgoing out;
    CacheRig<Policy, Warped, WarpStore> rig;
};

}  // namespace penstock::ondevice
