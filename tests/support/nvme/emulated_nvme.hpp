// An NVMe controller inside this process: registers in memory, an admin queue, and I/O queues with their own threads.
//
// It takes the place of a device for the bring-up (nvme_controller.hpp) and the rings (penstock/ondevice/nvme.hpp), and
// can misbehave on request. It has one namespace with id 1, memory pages of 4096 bytes, contiguous queues, and PRPs
// only.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "ondevice/dma_memory.hpp"
#include "support/nvme/emulated_queue.hpp"
#include "support/nvme/nvme_registers.hpp"

namespace penstock::ondevice {

struct EmulatedNvmeOptions {
    u32 most_entries = 1024;  // in an I/O queue
    u32 most_queues = 16;     // pairs of I/O queues
    u32 block_shift = 9;
    u32 transfer_shift = 5;   // one command moves at most 4096 << transfer_shift bytes; 0: no limit
    u32 doorbell_stride = 0;  // 4 << stride bytes between doorbells
    bool never_ready = false;
    DmaMemory* window = nullptr;  // where its registers are; null: memory of this process, which a GPU cannot reach
    EmulatedFaults faults{};
};

class EmulatedNvme {
  public:
    // `translate` returns the memory behind an I/O address. Requires: `blocks` outlives this.
    EmulatedNvme(BlockStore& blocks, Translate translate, const EmulatedNvmeOptions& options = {});
    ~EmulatedNvme();

    NvmeRegisters registers() { return {window_.data, window_.bytes}; }
    const EmulatedCounts& counts() const { return counts_; }

  private:
    struct Answer {
        u32 status = 0;  // SCT << 8 | SC
        u32 result = 0;
    };

    void serve();
    void configure();
    void stop_queues();
    bool take_admin();
    Answer run_admin(const NvmeCommand& command);
    Answer identify(const NvmeCommand& command);
    Answer create_completions(const NvmeCommand& command);
    Answer create_submission(const NvmeCommand& command);
    Answer remove_queue(const NvmeCommand& command);
    Answer queue_count(const NvmeCommand& command);
    u8* queue_memory(const NvmeCommand& command, u64 entry_bytes, Answer& answer);

    EmulatedNvmeOptions options_;
    EmulatedSpace space_;
    EmulatedCounts counts_;
    DmaBlock window_;
    u32 configuration_ = 0;  // the value that was last acted on
    const NvmeCommand* admin_entries_ = nullptr;
    u32 admin_size_ = 0;
    u32 admin_head_ = 0;
    std::unique_ptr<EmulatedCompletions> admin_completions_;
    std::map<u32, std::shared_ptr<EmulatedCompletions>> completions_;
    std::map<u32, std::unique_ptr<EmulatedQueue>> queues_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace penstock::ondevice
