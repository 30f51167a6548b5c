// What the page cache asks of whatever holds the data. A store S is a small object that is copied to every thread:
//
//   Status begin(Lanes group, u64 key, void* page, u64 deadline, u32& ticket)
//       Starts to bring a page. ok: in flight under `ticket`; busy: no room, ask again; else the page cannot be had.
//   Status test(Lanes group, u32 ticket, u64 key, void* page)
//       pending, or the outcome, once. With ok the page's bytes are there for who calls. Never two callers at once.
//   Status prepare(Lanes group, u64 key, const void* page, u64 deadline, u32& ticket)
//       Takes what it needs to write a page back, and reads the page no more when it returns. ok: to be sent under
//       `ticket`; busy: no room, ask again; else it cannot be written.
//   Status send(u64 key, u32 ticket, u64 deadline)
//       Writes what was prepared, and waits for it. By one lane, after all that prepared it have synchronised: several
//       pages are prepared one after another and then sent by a lane each.
//   Status commit(Lanes group, u64 deadline)
//       Makes durable what was put before. busy: no room, ask again; all of it is then done again.
//
// All lanes of `group` call together, so that they can copy a page together; the status of the lowest lane counts.
// A page in flight belongs to the store until its outcome is seen, also after those who waited for it have given up:
// late bytes never land in another page.
#pragma once

#include "penstock/ondevice/request.hpp"

namespace penstock::ondevice {

// A store from one that has `Status fetch(u64 key, void* page, u64 deadline)`, which returns with the page there, and
// put and commit without lanes. One lane does it all.
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
