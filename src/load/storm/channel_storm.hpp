// The host's side of a storm through one of two channels, a mailbox or NVMe queues, which one service answers. It
// compares the cost of the two. The service has the same threads and makes the same copies. Only the place where its
// threads find requests and leave answers differs.
#pragma once

#include <memory>

#include "load/storm/channel_work.hpp"
#include "ondevice/device_memory.hpp"
#include "ondevice/service/service.hpp"

namespace penstock::load {

enum class ChannelKind : std::uint8_t { mailbox, nvme };

struct ChannelSetup {
    ChannelKind kind = ChannelKind::mailbox;
    u32 slots = 1024;  // of NVMe queues, the entries of all together; each queue has one slot less than entries
    u32 slot_bytes = 4096;
    u32 service_threads = 1;
    u32 queues = 0;  // pairs of NVMe queues; 0: one for each service thread
    u64 limit_ns = 20'000'000'000;  // of one request
};

class ChannelStorm {
  public:
    // Requires: the file outlives the storm. Throws Error{invalid_argument} for sizes that do not fit.
    ChannelStorm(Device& device, FileHandle& file, u64 file_bytes, const ChannelSetup& setup);

    ondevice::ServiceEvidence evidence() const { return service_->evidence(); }
    // On the emulated device the work is done when run() returns. The caller sets all fields of `work` but the
    // channels.
    void run(Stream& stream, const StormWork& work, const Grid& grid);

  private:
    void open_queues(u64 file_bytes);
    void keep(const void* channels, u64 bytes);

    Device& device_;
    const ChannelSetup setup_;
    ondevice::DeviceMemory own_, shared_;
    std::unique_ptr<ondevice::Mailbox> mailbox_;
    std::unique_ptr<ondevice::NvmeQueues> queues_;
    ondevice::DmaBlock channels_;  // in the form that device code reads
    std::unique_ptr<ondevice::Service> service_;
};

}  // namespace penstock::load
