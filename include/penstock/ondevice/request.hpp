// A request of device code to storage, and what every channel that takes such requests promises.
//
// A channel C is a plain struct of raw pointers, called by one thread of a warp (its leader), with
//   Status submit(const Request&, u32& ticket)   claim and publish in one: for reads and flushes; busy when full
//   Status claim(u32& ticket)                    a slot to fill before publish: for writes; busy when full
//   Status publish(u32 ticket, const Request&)   busy: not sent, the ticket is still the caller's
//   Status test(u32 ticket)                      pending, or the final status, which is given exactly once
//   Status wait(u32 ticket, u64 deadline_ns)     the final status, or timed_out: the ticket is the channel's then
//   submit and claim with a `u32 from` behind    who asks, in place of the channel's own hint where to look for a slot
//   void   mark(u32 ticket, u32 mark)            before publish: what the request is about, as its owner calls it
//   bool   late(u32 mark)                        a request of this mark that timed out may still be carried out
//   void   release(u32 ticket)                   after a final status, when the data were used; or instead of publish
//   bool   settled(u32 ticket)                   nothing will touch the ticket's memory any more
//   void*  slot_data(u32 ticket), u32 depth()    the data slot of a ticket; how many tickets can be out at once
// The slot of a ticket that timed out is not used again before its late completion came: that may still write into it.
#pragma once

#include "penstock/ondevice/platform.hpp"
#include "penstock/ondevice/status.hpp"

namespace penstock::ondevice {

enum class Operation : u8 { read = 0, write = 1, flush = 2 };

struct Request {
    u64 offset_bytes;
    u64 memory;  // an address of the serving side; 0 is the ticket's own data slot
    u32 bytes;
    u16 file;
    Operation operation;
    u8 reserved;
};
static_assert(sizeof(Request) == 24, "crosses between host and GPU");

// Called where plain memory that another thread reads or wrote is touched. Nothing on real platforms; the platform of
// the tests checks there that the two are ordered.
template <class P>
struct Watch {
    static PENSTOCK_ONDEVICE void writes(const void*, u64) {}
    static PENSTOCK_ONDEVICE void reads(const void*, u64) {}
};

// How long to leave host memory alone after having waited for so long: polls cross the link that data come by too, so
// they get rarer, and what is late anyway is seen a quarter later at most. A poll takes a microsecond by itself.
PENSTOCK_ONDEVICE u32 between_polls(u64 waited_ns) {
    return waited_ns < 4096 ? 0 : waited_ns < 128 * 1024 ? static_cast<u32>(waited_ns / 4) : 32 * 1024;
}

// Polls `test` of a channel until a final status or the deadline, letting others go on between polls.
template <class P, class Channel>
PENSTOCK_ONDEVICE Status poll_until(const Channel& channel, u32 ticket, u64 deadline_ns) {
    const u64 began = P::now_ns();
    for (;;) {
        const Status status = channel.test(ticket);
        if (status != Status::pending) return status;
        const u64 now = P::now_ns();
        if (now >= deadline_ns) return Status::pending;
        P::pause(between_polls(now - began));
    }
}

}  // namespace penstock::ondevice
