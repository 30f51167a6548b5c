// How a page comes into the cache: what callers of the slow half of the page cache call. Who waits or loads works on a
// copy of the cache's description (misses.hpp).
#pragma once

#include "penstock/ondevice/cache/misses.hpp"

namespace penstock::ondevice {

template <class P, class Store, class Policy>
struct PageLoads : PageWrites<P, Store, Policy> {
    using Misses = PageMisses<P, Store, Policy>;
    using State = FrameState<P>;
    using PageWrites<P, Store, Policy>::agreed_late;
    using PageWrites<P, Store, Policy>::pool;

    // Loads the page if it is not here, and waits for it. A load that ended at another caller's earlier deadline is
    // begun again. pending, only if the whole page is to be overwritten: the frame is the caller's until `filled`.
    PENSTOCK_ONDEVICE_SLOW Status load(Lanes group, u64 key, const Want& want, u32& frame) const {
        const Want wanted = want;
        u32 found = frame;  // of its own, to be in a register
        const Status status = Misses(*this).load(group, key, wanted, found);
        frame = found;
        return status;
    }

    // ok: the page is here or comes. pending: the caller is to overwrite it, or asks after its load.
    PENSTOCK_ONDEVICE_SLOW Status start(Lanes group, u64 key, const Want& want, u32& frame,
                                        Hold hold = Hold::none) const {
        const Want wanted = want;
        u32 found = frame;
        const Status status = Misses(*this).start(group, key, wanted, found, hold);
        frame = found;
        return status;
    }

    // Waits for a page that `start` said is here or comes, for which the caller has references.
    PENSTOCK_ONDEVICE_SLOW Status finish(Lanes group, u64 key, const Want& want, u32& frame) const {
        const Status status = Misses(*this).wait(group, want, frame, P::cycles());
        if (status != Status::timed_out || agreed_late(group, want.deadline)) return status;
        return load(group, key, want, frame);
    }

    // The page that the caller overwrites is complete: others see it from now on.
    PENSTOCK_ONDEVICE void filled(Lanes group, u32 frame) const {
        P::sync(group);
        if (P::lane() == lowest(group)) {
            // No pins; a failed load may have left a status.
            P::template store<Scope::device, Order::relaxed>(&pool.frame(frame).note, 0u);
            State::template change<Order::release>(pool.frame(frame), kBusy, kValid | kDirty, 0);
        }
        P::sync(group);
    }

    // The frame of a page that is here, with a reference, or none. A hit may miss a page that is here, since it does
    // not wait for who changes the chain; this does.
    PENSTOCK_ONDEVICE_SLOW u32 held(u64 key) const {
        Bucket& bucket = pool.directory.bucket(key);
        pool.directory.lock(bucket);
        u32 frame = pool.directory.find(pool.directory.head(bucket), key);
        if (frame != kNoFrame && !this->joined(frame, 1, kValid)) frame = kNoFrame;
        pool.directory.unlock(bucket);
        return frame;
    }
};

}  // namespace penstock::ondevice
