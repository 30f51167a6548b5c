// The owner of one NvmeRingRef: its queues, slots, data areas and their PRP lists, in memory that the controller
// reaches.
//
// It makes the memory. The caller that brings the controller up tells the controller the addresses, and this the
// doorbells. Requires: the queues on the controller are deleted before this is destroyed.
#pragma once

#include "ondevice/dma_memory.hpp"
#include "penstock/ondevice/nvme.hpp"

namespace penstock::ondevice {

struct NvmeRingSizes {
    u32 depth = 64;          // entries of each queue: a power of two, 2 to 1024
    u32 slot_bytes = 4096;   // a multiple of page_bytes
    u32 page_bytes = 4096;   // the controller's, a power of two
    u32 most_bytes = 0;      // the controller's limit for one command; 0: none
};

class NvmeRing {
  public:
    // `shared` is memory that the controller and device code reach. `own` is memory of device code alone, which
    // exchanges words there: exchanges do not work across every link. Requires: `own` outlives this. Throws Error
    // (invalid_argument) for sizes that cannot be.
    NvmeRing(DmaMemory& shared, DmaMemory& own, const NvmeRingSizes& sizes);
    NvmeRing(DmaMemory& memory, const NvmeRingSizes& sizes) : NvmeRing(memory, memory, sizes) {}

    u64 submission_io() const { return submission_.io; }
    u64 completion_io() const { return completion_.io; }
    u32 depth() const { return sizes_.depth; }
    void attach(u32* submission_doorbell, u32* completion_doorbell, const NvmeNamespace& space);

    // For one warp. Requires: without `shared`, one lane at a time calls. A page cache needs `shared`, since each of
    // its lanes sends a page.
    NvmeRingRef<Native> ref(u32 hint = 0, bool shared = false) const;
    // A copy of the state. Requires: no thread uses the ring meanwhile.
    NvmeRingState state() const;

  private:
    void write_lists();

    const DmaMemory& own_;
    NvmeRingSizes sizes_;
    DmaBlock submission_, completion_, data_, lists_, state_;
    u32 list_stride_ = 0;
    NvmeRingRef<Native> ref_{};
};

}  // namespace penstock::ondevice
