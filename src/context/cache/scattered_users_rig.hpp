// Users of a stored array whose lanes are scattered, for tests. At each turn chance tells each thread by itself whether
// it loads an element, stores to it or does neither, so that lanes of a warp come to the cache in any grouping. Threads
// of the host and of a GPU run the same source.
//
// Every element has one owner, which alone stores to it and so knows what it holds. An element tells its place and a
// version, so the owner sees bytes of another page, torn bytes and lost stores.
#pragma once

#include "penstock/ondevice/stored_array.hpp"

namespace penstock::test {

using ondevice::u32, ondevice::u64;

PENSTOCK_ONDEVICE constexpr u64 scattered_element(u64 index, u32 version) { return u64{version} << 32 | index; }

struct ScatteredTally {
    u32 loads;
    u32 stores;
    u32 wrong;   // elements that are not what their owner stored
    u32 failed;  // loads and stores that ended in another status than ok
};

struct ScatteredPlan {
    const ondevice::StoredRef* ref;
    u32 users;
    u32 turns;
    u32* versions;  // one for each element; its owner alone touches it
    ScatteredTally* tally;
};

class ScatteredUser {
  public:
    PENSTOCK_ONDEVICE ScatteredUser(const ScatteredPlan& plan, u32 self)
        : plan_(plan), array_(*plan.ref), self_(self) {}

    PENSTOCK_ONDEVICE void run() const {
        for (u32 turn = 0; turn < plan_.turns; ++turn) {
            const u64 draw = ((u64{turn} << 32 | self_) + 1) * 0x9e3779b97f4a7c15ull >> 24;
            const u64 index = draw % (array_.size() / plan_.users) * plan_.users + self_;
            const u32 kind = static_cast<u32>(draw >> 20 & 3);
            if (kind == 0) store(index);
            else if (kind != 1) load(index);
        }
    }

  private:
    PENSTOCK_ONDEVICE void load(u64 index) const {
        u64 seen = 0;
        if (array_.load(index, seen) != ondevice::Status::ok) return count(&plan_.tally->failed);
        if (seen != scattered_element(index, plan_.versions[index])) count(&plan_.tally->wrong);
        count(&plan_.tally->loads);
    }
    PENSTOCK_ONDEVICE void store(u64 index) const {
        const u64 next = scattered_element(index, plan_.versions[index] + 1);
        if (array_.store(index, next) != ondevice::Status::ok) return count(&plan_.tally->failed);
        plan_.versions[index] += 1;
        count(&plan_.tally->stores);
    }
    PENSTOCK_ONDEVICE static void count(u32* counter) { ondevice::Native::tick(counter, 1u); }

    const ScatteredPlan& plan_;
    ondevice::StoredArray<u64> array_;
    u32 self_;
};

// Runs the users on a GPU, in blocks of 64 threads, and waits for them. Returns the error code of CUDA.
int run_scattered_users_on_gpu(const ScatteredPlan& plan);

}  // namespace penstock::test
