// What the page cache asks of the store that holds the data. A store is a small object that every thread has a copy of:
//
//   Status begin(Lanes group, u64 key, void* page, u64 deadline, u32& ticket)
//       Starts to bring a page. ok: in flight under `ticket`; busy: no room, ask again; else the page cannot be had.
//   Status test(Lanes group, u32 ticket, u64 key, void* page)
//       pending, or the outcome, once. With ok the page's bytes are there for the callers. Requires: one caller at a
//       time.
//   Status prepare(Lanes group, u64 key, const void* page, u64 deadline, u32& ticket)
//       Takes what it needs to write a page back. Ensures: the store does not read the page after it returns. ok: to be
//       sent under `ticket`; busy: no room, ask again; else the page cannot be written.
//   Status send(u64 key, u32 ticket, u64 deadline)
//       Writes what was prepared, and waits for it. Requires: one lane calls, after the lanes that prepared the page
//       have synchronised. So the lanes prepare several pages one after another, and then each lane sends one of them.
//   Status commit(Lanes group, u64 deadline)
//       Makes durable what was sent before. busy: no room; the caller asks again, and all of it is done again.
//
// All lanes of `group` call together, so that they can copy a page together; the status of the lowest lane counts.
// A page in flight belongs to the store until a caller sees its outcome, even when all callers that waited for it have
// given up. So late bytes never land in another page.
#pragma once

#include "penstock/ondevice/request.hpp"

namespace penstock::ondevice {

// A store made of an object whose `Status fetch(u64 key, void* page, u64 deadline)` returns with the page there, and
// whose put and commit take no lanes. One lane does all the work.
template <class P, class Waiting>
struct Immediate {
    Waiting* waiting;

    PENSTOCK_ONDEVICE Status begin(Lanes group, u64 key, void* page, u64 deadline, u32& ticket) const {
        if (P::lane() == lowest(group)) ticket = static_cast<u32>(waiting->fetch(key, page, deadline));
        return Status::ok;
    }
    PENSTOCK_ONDEVICE Status test(Lanes, u32 ticket, u64, void*) const { return static_cast<Status>(ticket); }
    PENSTOCK_ONDEVICE Status prepare(Lanes group, u64 key, const void* page, u64 deadline, u32&) const {
        return P::lane() == lowest(group) ? waiting->put(key, page, deadline) : Status::ok;
    }
    PENSTOCK_ONDEVICE Status send(u64, u32, u64) const { return Status::ok; }
    PENSTOCK_ONDEVICE Status commit(Lanes group, u64 deadline) const {
        return P::lane() == lowest(group) ? waiting->commit(deadline) : Status::ok;
    }
};

}  // namespace penstock::ondevice
