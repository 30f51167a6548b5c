// The host's end of NVMe queues that device code drives: service threads take commands from it as they take descriptors
// from a mailbox (MailboxServer). One thread at a time.
//
// There is no controller: who made the rings serves them. So a command's bytes belong in the data area of its id, which
// its page addresses must name, and whatever else an entry says is answered as invalid. A completion queue is never
// full, for a ring has fewer slots than entries, and a slot is used again only after its completion was taken.
#pragma once

#include <span>
#include <vector>

#include "penstock/ondevice/nvme.hpp"

namespace penstock::ondevice {

class NvmeServer {
  public:
    // Rings of one depth and slot size, at least one, attached to doorbells in memory of this process. All of it
    // outlives the server.
    explicit NvmeServer(std::span<const NvmeRingRef<Native>> rings);

    // Takes one command, if there is any: all that a look at a doorbell told before the next ring. What makes no sense
    // asks for a file that there is not.
    bool next(u32& slot, Request& request);
    // Exactly once for each command taken, in any order, after its data are in place.
    void complete(u32 slot, Status status);

    // Slot: ring * depth + command id. The last id of a ring is of no slot.
    u32 slots() const { return static_cast<u32>(queues_.size()) << depth_shift_; }
    u32 slot_bytes() const { return slot_bytes_; }
    u8* slot_data(u32 slot) const {
        return queues_[slot >> depth_shift_].ring.area.data + u64{slot & mask_} * slot_bytes_;
    }

  private:
    struct Queue {
        NvmeRingRef<Native> ring;
        u32 head = 0;             // of the submission queue
        u32 tail = 0;             // as the doorbell told last
        u32 completion_tail = 0;
        u32 phase = 1;
    };
    bool look(Queue& queue) const;
    Request request_of(const Queue& queue, const NvmeCommand& command) const;
    void post(Queue& queue, u32 id, u32 status);

    std::vector<Queue> queues_;
    u32 depth_shift_ = 0;
    u32 mask_ = 0;
    u32 slot_bytes_ = 0;
    u32 cursor_ = 0;
};

}  // namespace penstock::ondevice
