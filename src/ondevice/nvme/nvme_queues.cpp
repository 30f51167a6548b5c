// See nvme_queues.hpp.
#include "ondevice/nvme/nvme_queues.hpp"

#include <string>

#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kBlockShift = 9;
// The room of a pair of doorbells. A host thread polls one while the device stores to its neighbours, so each pair has
// cache lines of its own.
constexpr u64 kDoorbellBytes = 256;

[[noreturn]] void refuse_queues(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "make NVMe queues", cause, advice);
}

}  // namespace

NvmeQueues::NvmeQueues(DmaMemory& shared, DmaMemory& own, const NvmeQueuesSizes& sizes) {
    if (sizes.queues == 0) refuse_queues("no queues", "give at least one");
    doorbells_ = shared.allocate(sizes.queues * kDoorbellBytes);
    const NvmeNamespace space{1, kBlockShift, sizes.bytes >> kBlockShift};
    for (u32 i = 0; i < sizes.queues; ++i) {
        const NvmeRingSizes one{.depth = sizes.depth, .slot_bytes = sizes.slot_bytes};
        rings_.push_back(std::make_unique<NvmeRing>(shared, own, one));
        u8* const pair = doorbells_.data + i * kDoorbellBytes;
        rings_.back()->attach(reinterpret_cast<u32*>(pair), reinterpret_cast<u32*>(pair + kDoorbellBytes / 2), space);
        refs_.push_back(rings_.back()->ref(0, true));
    }
}

NvmeServer NvmeQueues::server(u32 first, u32 last) const {
    if (first >= last || last > count()) {
        refuse_queues("a server of queues " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                          std::to_string(count()),
                      "give a range that is not empty and ends at the last queue or before it");
    }
    return NvmeServer(refs().subspan(first, last - first));
}

}  // namespace penstock::ondevice
