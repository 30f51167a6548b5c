// The host's end of NVMe queues that device code drives. A service thread takes commands from it as it takes
// descriptors from a mailbox (MailboxServer). Requires: one thread at a time uses it.
//
// There is no controller: the process that made the rings serves them. So a command's bytes must lie in the data area
// of its id, and its page addresses must name that area; the server answers any other entry as invalid. A completion
// queue is never full, because a ring has fewer slots than entries, and device code uses a slot again only after it
// took its completion.
#pragma once

#include <span>
#include <vector>

#include "penstock/ondevice/nvme.hpp"

namespace penstock::ondevice {

class NvmeServer {
  public:
    // Requires: at least one ring, all of one depth and slot size, attached to doorbells in memory of this process, and
    // all of it outlives the server.
    explicit NvmeServer(std::span<const NvmeRingRef<Native>> rings);

    // Takes one command, if there is any. It takes all commands that a look at one doorbell told before it looks at the
    // next ring's. A command that makes no sense becomes a request for a file that does not exist.
    bool next(u32& slot, Request& request);
    // Answers a command. Requires: once for each command taken, in any order, after its data are in place.
    void complete(u32 slot, Status status);

    // The number of slots. A slot's number is ring * depth + command id; the last id of a ring has no slot.
    u32 slots() const { return static_cast<u32>(queues_.size()) << depth_shift_; }
    u32 slot_bytes() const { return slot_bytes_; }
    u8* slot_data(u32 slot) const {
        return queues_[slot >> depth_shift_].ring.area.data + u64{slot & mask_} * slot_bytes_;
    }

  private:
    struct Queue {
        NvmeRingRef<Native> ring;
        u32 head = 0;             // the submission queue's
        u32 tail = 0;             // what the doorbell told last
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
