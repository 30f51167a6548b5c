// The owner of one NvmeRingRef: its queues, slots, data areas and their PRP lists, in memory the controller reaches.
//
// It makes the memory; whoever brings the controller up tells it the addresses and gives the doorbells. It must outlive
// the queues on the controller: delete those first.
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
    // `shared` is memory that the controller and the device code reach; `own`, which outlives this, of the device code
    // alone, for it exchanges words there, which does not work across every link. Throws Error (invalid_argument) for
    // sizes that cannot be.
    NvmeRing(DmaMemory& shared, DmaMemory& own, const NvmeRingSizes& sizes);
    NvmeRing(DmaMemory& memory, const NvmeRingSizes& sizes) : NvmeRing(memory, memory, sizes) {}

    u64 submission_io() const { return submission_.io; }
    u64 completion_io() const { return completion_.io; }
    u32 depth() const { return sizes_.depth; }
    void attach(u32* submission_doorbell, u32* completion_doorbell, const NvmeNamespace& space);

    // For one warp. `shared` unless one lane at a time calls, as under a page cache, whose lanes send a page each.
    NvmeRingRef<Native> ref(u32 hint = 0, bool shared = false) const;
    // As it is while nobody uses the ring.
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
