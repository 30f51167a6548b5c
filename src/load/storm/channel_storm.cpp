// See channel_storm.hpp.
#include "load/storm/channel_storm.hpp"

#include <string>
#include <vector>

#include "load/storm/storm_launch.hpp"

namespace penstock::load {
namespace {

constexpr u32 kBlockBytes = 512;

[[noreturn]] void refuse(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "measure a channel of the device", cause, advice);
}

template <class Channel>
ChannelWork<Channel> work_of(const StormWork& storm, const ondevice::DmaBlock& channels, u64 limit_ns) {
    const auto count = static_cast<u32>(channels.bytes / sizeof(Channel));
    return {storm, reinterpret_cast<const Channel*>(channels.data), count, limit_ns};
}

}  // namespace

ChannelStorm::ChannelStorm(Device& device, FileHandle& file, u64 file_bytes, const ChannelSetup& setup)
    : device_(device), setup_(setup), own_(device, MemoryKind::device), shared_(device, MemoryKind::pinned) {
    const std::vector<ondevice::FileSet> files{&file};
    const ondevice::ServiceOptions options{.threads = setup.service_threads};
    if (setup.kind == ChannelKind::nvme) {
        open_queues(file_bytes);
        service_ = std::make_unique<ondevice::Service>(*queues_, files, options);
        return;
    }
    mailbox_ = std::make_unique<ondevice::Mailbox>(shared_, own_,
                                                   ondevice::MailboxSizes{setup.slots, setup.slot_bytes});
    const auto ref = mailbox_->ref();
    keep(&ref, sizeof ref);
    service_ = std::make_unique<ondevice::Service>(*mailbox_, files, options);
}

void ChannelStorm::open_queues(u64 file_bytes) {
    const u32 queues = setup_.queues != 0 ? setup_.queues : setup_.service_threads;
    if (queues == 0 || setup_.slots % queues != 0) {
        refuse(std::to_string(setup_.slots) + " slots for " + std::to_string(queues) + " queues",
               "give as many for each queue");
    }
    queues_ = std::make_unique<ondevice::NvmeQueues>(
        shared_, own_, ondevice::NvmeQueuesSizes{queues, setup_.slots / queues, setup_.slot_bytes, file_bytes});
    keep(queues_->refs().data(), queues_->refs().size_bytes());
}

void ChannelStorm::keep(const void* channels, u64 bytes) {
    channels_ = own_.allocate(bytes);
    own_.write(channels_, channels, bytes);
}

void ChannelStorm::run(Stream& stream, const StormWork& work, const Grid& grid) {
    if (grid.threads > kChannelThreads || work.in_flight != 1) {
        refuse("blocks of " + std::to_string(grid.threads) + " threads, " + std::to_string(work.in_flight) +
                   " requests under way",
               "give at most " + std::to_string(kChannelThreads) + " threads and one request of each warp");
    }
    if (queues_ && work.request_bytes % kBlockBytes != 0) {
        refuse("requests of " + std::to_string(work.request_bytes) + " bytes", "give a multiple of 512");
    }
    if (queues_) {
        run_channel_storm(device_, stream, work_of<NvmeWork::Kind>(work, channels_, setup_.limit_ns), grid);
    } else {
        run_channel_storm(device_, stream, work_of<MailboxWork::Kind>(work, channels_, setup_.limit_ns), grid);
    }
}

}  // namespace penstock::load
