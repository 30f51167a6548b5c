// Brings an NVMe controller up and gives it queues: reset, enable, identify, number of queues, create and delete.
//
// It uses only the controller's registers and memory that the controller reaches. So a controller in this process and a
// device behind an IOMMU look the same to it. Every wait has a deadline. Only one thread may use it at a time. All
// functions throw Error, with the command and the controller's status in the cause.
#pragma once

#include <string>

#include "ondevice/dma_memory.hpp"
#include "ondevice/nvme/nvme_ring.hpp"
#include "support/nvme/nvme_registers.hpp"

namespace penstock::ondevice {

struct NvmeFacts {
    std::string serial;
    std::string model;
    std::string firmware;
    u32 namespaces = 0;
    u32 page_bytes = 0;
    u32 most_entries = 0;  // in an I/O queue
    u32 queues = 0;        // pairs of I/O queues that the controller granted
    u64 most_bytes = 0;    // of one command; 0: no limit
};

struct NvmeControllerOptions {
    u64 command_ns = 5'000'000'000;  // for one admin command
    u64 ready_ns = 0;                // for a reset; 0: the time that the controller asks for
    u32 queues = 16;                 // pairs to ask for
};

class NvmeController {
  public:
    NvmeController(NvmeRegisters registers, DmaMemory& memory, const NvmeControllerOptions& options = {});
    // Disables the controller, which deletes its queues.
    ~NvmeController();
    NvmeController(const NvmeController&) = delete;
    NvmeController& operator=(const NvmeController&) = delete;

    const NvmeFacts& facts() const { return facts_; }
    NvmeNamespace open_namespace(u32 id);

    // Creates pair `id` (from 1) of the ring's queues and attaches the ring to it.
    void create_queues(NvmeRing& ring, u32 id, const NvmeNamespace& space);
    void delete_queues(u32 id);
    // Announces the shutdown to the controller and waits until it has finished.
    void shut_down();

  private:
    static constexpr u32 admin_entries = 16;

    void wait_status(u32 mask, u32 wanted, const char* what);
    void disable();
    void enable();
    void identify();
    void ask_for_queues(u32 queues);
    u32 run(NvmeCommand command, const char* what);

    NvmeRegisters registers_;
    NvmeControllerOptions options_;
    NvmeFacts facts_;
    DmaBlock submission_, completion_, page_;
    u32 tail_ = 0;
    u32 head_ = 0;
    u32 phase_ = 1;
    u16 next_id_ = 0;
};

}  // namespace penstock::ondevice
