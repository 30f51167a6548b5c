// Several pairs of NVMe queues as one channel: warps spread over them, so that fewer wait for the turn of one.
//
// All rings have one depth. A ticket is that of its ring, with the ring's number in the slot, so that any warp can ask
// after a ticket of any other, as users of a page cache do. A flush goes to one ring and, as NVMe says, covers what was
// completed before on all rings.
#pragma once

#include "penstock/ondevice/nvme.hpp"

namespace penstock::ondevice {

template <class P>
struct NvmeRingsRef {
    const NvmeRingRef<P>* rings;  // in memory of the device; `shared` unless one lane at a time uses each
    u32 count;
    u32 each;  // slots of a ring; count * each is at most most_slots
    u32 hint;  // the caller's number, its warp's own

    PENSTOCK_ONDEVICE u32 depth() const { return count * each; }
    PENSTOCK_ONDEVICE void* slot_data(u32 ticket) const { return of(ticket).slot_data(own(ticket)); }

    PENSTOCK_ONDEVICE Status claim(u32& ticket) const { return claim(ticket, hint); }
    // Claims a slot of the caller's ring, or of another that has room.
    PENSTOCK_ONDEVICE Status claim(u32& ticket, u32 from) const {
        Status status = Status::busy;
        for (u32 turn = 0; turn < count && status == Status::busy; ++turn) {
            const u32 ring = (from + turn) % count;
            u32 own = 0;
            status = rings[ring].claim(own, from / count);
            if (status == Status::ok) ticket = ticket_of(ring * each + slot_of(own), lap_of(own));
        }
        return status;
    }

    PENSTOCK_ONDEVICE Status submit(const Request& request, u32& ticket) const { return submit(request, ticket, hint); }
    PENSTOCK_ONDEVICE Status submit(const Request& request, u32& ticket, u32 from) const {
        Status status = claim(ticket, from);
        if (status != Status::ok) return status;
        status = publish(ticket, request);
        if (status != Status::ok) release(ticket);
        return status;
    }

    PENSTOCK_ONDEVICE Status publish(u32 ticket, const Request& request) const {
        return there(ticket) ? of(ticket).publish(own(ticket), request) : Status::invalid;
    }
    PENSTOCK_ONDEVICE Status test(u32 ticket) const {
        return there(ticket) ? of(ticket).test(own(ticket)) : Status::invalid;
    }
    PENSTOCK_ONDEVICE Status wait(u32 ticket, u64 deadline_ns) const {
        return there(ticket) ? of(ticket).wait(own(ticket), deadline_ns) : Status::invalid;
    }
    PENSTOCK_ONDEVICE void release(u32 ticket) const {
        if (there(ticket)) of(ticket).release(own(ticket));
    }
    PENSTOCK_ONDEVICE bool settled(u32 ticket) const { return !there(ticket) || of(ticket).settled(own(ticket)); }
    PENSTOCK_ONDEVICE void mark(u32 ticket, u32 mark) const { of(ticket).mark(own(ticket), mark); }
    PENSTOCK_ONDEVICE bool late(u32 mark) const {
        for (u32 ring = 0; ring < count; ++ring) {
            if (rings[ring].late(mark)) return true;
        }
        return false;
    }

  private:
    PENSTOCK_ONDEVICE bool there(u32 ticket) const { return slot_of(ticket) < depth(); }
    PENSTOCK_ONDEVICE const NvmeRingRef<P>& of(u32 ticket) const { return rings[slot_of(ticket) / each]; }
    PENSTOCK_ONDEVICE u32 own(u32 ticket) const { return ticket_of(slot_of(ticket) % each, lap_of(ticket)); }
};

}  // namespace penstock::ondevice
