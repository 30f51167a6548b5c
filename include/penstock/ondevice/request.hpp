// A request of device code to storage, and what every channel promises that takes such requests.
//
// A channel is a plain struct of raw pointers. One thread of a warp, its leader, calls it:
//   Status submit(const Request&, u32& ticket)   claims and publishes in one, for reads and flushes; busy when full
//   Status claim(u32& ticket)                    gives a slot to fill before publish, for writes; busy when full
//   Status publish(u32 ticket, const Request&)   sends; busy: not sent, and the ticket is still the caller's
//   Status test(u32 ticket)                      pending, or the final status, which it gives exactly once
//   Status wait(u32 ticket, u64 deadline_ns)     the final status, or timed_out: the ticket is then the channel's
//   submit and claim with a last `u32 from`      the caller's number in place of the channel's hint where to look first
//   void   mark(u32 ticket, u32 mark)            before publish: the owner's word for what the request is about
//   bool   late(u32 mark)                        whether a request of this mark that timed out may still be carried out
//   void   release(u32 ticket)                   after a final status, when the data were used; or instead of publish
//   bool   settled(u32 ticket)                   whether nothing will touch the ticket's memory any more
//   void*  slot_data(u32 ticket), u32 depth()    the data slot of a ticket; how many tickets can be out at once
// The slot of a ticket that timed out is not used again before its late completion came, because the server may still
// write into it.
#pragma once

#include "penstock/ondevice/platform.hpp"
#include "penstock/ondevice/status.hpp"

namespace penstock::ondevice {

enum class RequestOperation : u8 { read = 0, write = 1, flush = 2 };

struct Request {
    u64 offset_bytes;
    u64 memory;  // an address of the serving side; 0 is the ticket's own data slot
    u32 bytes;
    u16 file;
    RequestOperation operation;
    u8 reserved;
};
static_assert(sizeof(Request) == 24, "crosses between host and GPU");

// The headers call this where they touch plain memory that another thread reads or wrote. It does nothing on real
// platforms; the platform of the tests checks here that the two accesses are ordered.
template <class P>
struct Watch {
    static PENSTOCK_ONDEVICE void writes(const void*, u64) {}
    static PENSTOCK_ONDEVICE void reads(const void*, u64) {}
};

// How long a caller that has waited for so long pauses before it polls host memory again. Polls cross the link that the
// data come by too, so they get rarer; an answer is seen at most a quarter later than it came. A poll takes a
// microsecond.
PENSTOCK_ONDEVICE u32 between_polls(u64 waited_ns) {
    return waited_ns < 4096 ? 0 : waited_ns < 128 * 1024 ? static_cast<u32>(waited_ns / 4) : 32 * 1024;
}

// The status of one lane of `group`, which all of them take for theirs.
template <class P>
PENSTOCK_ONDEVICE Status agreed(Lanes group, Status status, u32 lane) {
    return static_cast<Status>(P::from(group, static_cast<int>(status), lane));
}
template <class P>
PENSTOCK_ONDEVICE Status agreed(Lanes group, Status status) {
    return agreed<P>(group, status, lowest(group));
}
// Whether the deadline is past for the leader of `group`.
template <class P>
PENSTOCK_ONDEVICE bool agreed_late(Lanes group, u64 deadline) {
    return P::from(group, static_cast<u32>(P::now_ns() >= deadline), lowest(group)) != 0;
}

// Polls `test` of a channel until a final status or the deadline, and lets other threads go on between polls.
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
