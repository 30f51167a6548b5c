// The host's side of a storm in which clients of one source ask through either channel, a mailbox or NVMe queues, and
// one service answers: what the two cost beside each other. The service is the same, threads and copies; only where its
// threads look for requests and leave answers differs.
#pragma once

#include <memory>

#include "load/storm/channel_work.hpp"
#include "ondevice/device_memory.hpp"
#include "ondevice/service/service.hpp"

namespace penstock::load {

enum class ChannelKind : std::uint8_t { mailbox, nvme };

struct ChannelSetup {
    ChannelKind kind = ChannelKind::mailbox;
    u32 slots = 1024;  // of NVMe queues, entries of all together; each queue has one slot less than entries
    u32 slot_bytes = 4096;
    u32 service_threads = 1;
    u32 queues = 0;  // of NVMe, in pairs; 0: one for each thread
    u64 limit_ns = 20'000'000'000;  // of one request
};

class ChannelStorm {
  public:
    // The file outlives it. Throws Error (invalid_argument) for sizes that do not fit.
    ChannelStorm(Device& device, FileHandle& file, u64 file_bytes, const ChannelSetup& setup);

    ondevice::ServiceEvidence evidence() const { return service_->evidence(); }
    // On the emulated device done when it returns. `work` has all but channels.
    void run(Stream& stream, const StormWork& work, const Grid& grid);

  private:
    void open_queues(u64 file_bytes);
    void keep(const void* channels, u64 bytes);

    Device& device_;
    const ChannelSetup setup_;
    ondevice::DeviceMemory own_, shared_;
    std::unique_ptr<ondevice::Mailbox> mailbox_;
    std::unique_ptr<ondevice::NvmeQueues> queues_;
    ondevice::DmaBlock channels_;  // as device code sees them
    std::unique_ptr<ondevice::Service> service_;
};

}  // namespace penstock::load
