// The owner of NVMe queues that threads of the host serve, without a controller: rings, and doorbells that are words of
// memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ondevice/nvme/nvme_ring.hpp"
#include "ondevice/nvme/nvme_server.hpp"

namespace penstock::ondevice {

struct NvmeQueuesSizes {
    u32 queues = 1;         // pairs of queues
    u32 depth = 64;         // entries of each queue: a power of two, 2 to 1024; one stays empty
    u32 slot_bytes = 4096;  // whole pages of 4096 bytes
    u64 bytes = 0;          // the namespace's, a multiple of its block of 512
};

class NvmeQueues {
  public:
    // `shared` and `own` are those of NvmeRing. Requires: `own` outlives this. Throws Error (invalid_argument) for
    // sizes that cannot be.
    NvmeQueues(DmaMemory& shared, DmaMemory& own, const NvmeQueuesSizes& sizes);

    u32 count() const { return static_cast<u32>(refs_.size()); }
    // For device code. Any number of warps may use each.
    std::span<const NvmeRingRef<Native>> refs() const { return refs_; }
    NvmeRingState state(u32 queue) const { return rings_[queue]->state(); }
    // The host's end of queues [first, last), from their first entries on. Requires: no queue ever gets a second
    // server, and one thread at a time uses the server.
    NvmeServer server(u32 first, u32 last) const;

  private:
    std::vector<std::unique_ptr<NvmeRing>> rings_;
    std::vector<NvmeRingRef<Native>> refs_;
    DmaBlock doorbells_;
};

}  // namespace penstock::ondevice
