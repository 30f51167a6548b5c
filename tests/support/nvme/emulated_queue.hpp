// The I/O queues of an emulated NVMe controller. Several submission queues may post to one completion queue. Each
// submission queue has a thread that takes entries, moves their bytes, and ends them in the order that its faults
// require.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "ondevice/nvme/prp.hpp"
#include "penstock/ondevice/nvme_entry.hpp"
#include "support/nvme/block_store.hpp"

namespace penstock::ondevice {

struct EmulatedFaults {
    u32 hold_most = 1;       // commands that are held while new ones arrive, so that they end out of order
    u32 fail_percent = 0;    // end with fail_status and move nothing
    u32 fail_status = 0x281;  // SCT << 8 | SC: an unrecovered read error
    u32 delay_percent = 0;   // end later by delay_ns
    u32 lose_percent = 0;    // never end; if late_ns is not 0, end after late_ns
    u64 delay_ns = 200'000;
    u64 late_ns = 60'000'000;
    u32 seed = 1;
};

struct EmulatedCounts {
    std::atomic<u64> commands{0};
    std::atomic<u64> failed{0};
    std::atomic<u64> lost{0};
    std::atomic<u64> reordered{0};
    std::atomic<u64> bad_doorbells{0};
};

// A namespace and the memory that commands refer to.
struct EmulatedSpace {
    BlockStore& blocks;
    Translate translate;
    u32 block_shift;
    u64 page_bytes;
    u64 most_bytes;  // of one command; 0: no limit
};

class EmulatedCompletions {
  public:
    EmulatedCompletions(NvmeCompletion* entries, u32 size, const u32* head_doorbell)
        : entries_(entries), size_(size), head_doorbell_(head_doorbell) {}
    // Posts the entry's dwords 0, 2 and 3 without the phase. Returns false if the queue is full.
    bool post(u32 result, u32 dword2, u32 dword3);
    u32 users = 0;  // submission queues that post here

  private:
    std::mutex mutex_;
    NvmeCompletion* entries_;
    u32 size_;
    const u32* head_doorbell_;
    u32 tail_ = 0;
    u32 phase_ = 1;
};

struct EmulatedQueueSetup {
    u32 id;
    const NvmeCommand* entries;
    u32 size;
    const u32* tail_doorbell;
    std::shared_ptr<EmulatedCompletions> completions;
};

class EmulatedQueue {
  public:
    EmulatedQueue(const EmulatedQueueSetup& setup, const EmulatedSpace& space, const EmulatedFaults& faults,
                  EmulatedCounts& counts);
    ~EmulatedQueue();  // drops commands that have not ended
    EmulatedCompletions& completions() { return *setup_.completions; }

  private:
    struct Held {
        NvmeCommand command;
        u64 due_ns;  // 0: at once
        bool fail;
    };
    void serve();
    bool take();
    bool end_one(bool idle);
    u32 run(const NvmeCommand& command);
    bool chance(u32 percent) { return percent != 0 && random_() % 100 < percent; }

    EmulatedQueueSetup setup_;
    const EmulatedSpace& space_;
    EmulatedFaults faults_;
    EmulatedCounts& counts_;
    std::mt19937 random_;
    std::vector<Held> held_;
    u32 head_ = 0;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace penstock::ondevice
