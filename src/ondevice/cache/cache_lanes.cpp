// See cache_lanes.hpp.
#include "ondevice/cache/cache_lanes.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 aligned(u64 bytes) noexcept { return (bytes + 63) / 64 * 64; }

}  // namespace

CacheLanes::CacheLanes(Device& device, const Memories& memories, u64 answer_bytes)
    : outcomes_(memories.own.allocate(kLanes * sizeof(CacheOutcome))),
      answers_(memories.shared.allocate(kLanes * aligned(answer_bytes))) {
    for (u32 i = 0; i < kLanes; ++i) {
        lanes_[i].stream = device.make_stream();
        lanes_[i].event = device.make_event();
        lanes_[i].outcome = reinterpret_cast<CacheOutcome*>(outcomes_.data) + i;
        lanes_[i].answers = answers_.data + i * aligned(answer_bytes);
        idle_.push_back(&lanes_[i]);
    }
}

CacheLane& CacheLanes::take(Company company) {
    std::unique_lock lock(mutex_);
    const u64 mine = next_++;
    const std::size_t wanted = company == Company::none ? kLanes : 1;
    changed_.wait(lock, [&] { return mine == served_ && idle_.size() >= wanted; });
    ++served_;
    changed_.notify_all();
    CacheLane& lane = *idle_.back();
    idle_.resize(idle_.size() - wanted);
    return lane;
}

void CacheLanes::give(CacheLane& lane, Company company) {
    const std::scoped_lock lock(mutex_);
    if (company == Company::none) {
        for (CacheLane& each : lanes_) idle_.push_back(&each);
    } else {
        idle_.push_back(&lane);
    }
    changed_.notify_all();
}

u64 CacheLanes::waiting() const {
    const std::scoped_lock lock(mutex_);
    return next_ - served_;
}

}  // namespace penstock::ondevice
