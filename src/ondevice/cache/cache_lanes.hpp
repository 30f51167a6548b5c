// Lanes on which calls of several threads use one page cache at once. Each lane has a stream, an event, and a place for
// the outcome of its call. A call may also ask to have all lanes, so that no other call runs beside it.
//
// Threads get their turns in the order in which they asked. Otherwise a call that must be alone would wait for ever
// while others come again and again.
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
    u8* answers = nullptr;            // page-locked: copies of the device's answers, for the caller
    DmaBlock order = {};              // for RowOrder, from the first gather on that needs one
};

class CacheLanes {
  public:
    // Enough to keep a device busy while one lane waits for its last pages.
    static constexpr u32 kLanes = 4;

    struct Memories {
        DmaMemory& own;
        DmaMemory& shared;
    };
    // `answer_bytes`: the room for answers of each lane. Requires: the device and its memory outlive this.
    CacheLanes(Device& device, const Memories& memories, u64 answer_bytes);

    enum class Company { others, none };
    // A thread's hold on a lane. The constructor waits for the lane, the destructor gives it back.
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

    // How many turns threads have asked for and not got yet.
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
    std::vector<CacheLane*> idle_;  // guarded by mutex_, as the next line; empty while a call is alone
    u64 next_ = 0, served_ = 0;     // turns that threads asked for, and got
};

}  // namespace penstock::ondevice
