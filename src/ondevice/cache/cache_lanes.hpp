// Lanes on which calls of several threads go on in one page cache at once, each with a stream, an event, and a place
// for what becomes of the call; and calls that nobody goes on beside.
//
// Turns come in the order in which they were asked for: else who must be alone would wait for ever where others come
// again and again.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "ondevice/cache/file_cache_work.hpp"
#include "ondevice/dma_memory.hpp"
#include "penstock/device.hpp"

namespace penstock::ondevice {

struct CacheLane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> event;
    CacheOutcome* outcome = nullptr;  // the device's; status ok between calls
    u8* answers = nullptr;            // page-locked: what the device has there, on its way to who asked
};

class CacheLanes {
  public:
    // As many as keep a device busy while one of them waits for its last pages.
    static constexpr u32 kLanes = 4;

    struct Memories {
        DmaMemory& own;
        DmaMemory& shared;
    };
    // `answer_bytes` of each lane. The device and its memory outlive this.
    CacheLanes(Device& device, const Memories& memories, u64 answer_bytes);

    enum class Company { others, none };
    // A lane from construction, which waits for it, to the end.
    class Turn {
      public:
        Turn(CacheLanes& lanes, Company company) : lanes_(lanes), company_(company), lane_(lanes.take(company)) {}
        ~Turn() { lanes_.give(lane_, company_); }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        CacheLane& operator*() const noexcept { return lane_; }

      private:
        CacheLanes& lanes_;
        const Company company_;
        CacheLane& lane_;
    };

    // Turns that were asked for and not yet given.
    u64 waiting() const;
    u64 device_bytes() const noexcept { return outcomes_.bytes; }
    u64 pinned_bytes() const noexcept { return answers_.bytes; }

  private:
    CacheLane& take(Company company);
    void give(CacheLane& lane, Company company);

    DmaBlock outcomes_, answers_;
    CacheLane lanes_[kLanes];
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<CacheLane*> idle_;  // under mutex_, as the next; empty while somebody is alone
    u64 next_ = 0, served_ = 0;     // turns asked for, and given
};

}  // namespace penstock::ondevice
