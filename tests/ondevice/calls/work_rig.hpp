// Device code that calls the host as an application does, for tests. Threads of the host and lanes of a GPU run the
// same source.
#pragma once

#include "penstock/ondevice/calls.hpp"

namespace penstock::ondevice {

struct CallsTally {
    u32 ok;
    u32 wrong;  // calls that failed, or brought the answer to another
    u64 ns;     // of all rounds of the lane that was measured
};

struct CallsPlan {
    const CallsRef* calls;
    u32 function;  // answers with the number that is its argument, and one more; the result is the value doubled
    u32 warps;
    Lanes lanes;  // of each warp
    u32 rounds;
    const char* log;  // the name of a file to which each lane prints a line a round; null: none
    u64* cycles;    // of each call of the first lane
    CallsTally* tally;
};

class CallsWork {
  public:
    PENSTOCK_ONDEVICE CallsWork(const CallsPlan& plan, u32 warp) : plan_(plan), warp_(warp) {}

    PENSTOCK_ONDEVICE void run() const {
        const bool first = warp_ == 0 && Native::lane() == 0;
        const u64 began = Native::now_ns();
        for (u32 round = 0; round < plan_.rounds; ++round) {
            const u64 before = Native::cycles();
            call(round);
            if (first) plan_.cycles[round] = Native::cycles() - before;
        }
        if (first) plan_.tally->ns = Native::now_ns() - began;
        if (plan_.log != nullptr) print_lines();
    }

  private:
    PENSTOCK_ONDEVICE void print_lines() const {
        const u32 lane = Native::lane();
        long long log = -1;
        Native::sync(plan_.lanes);  // each has waited for its own answers
        if (lane == 0) log = plan_.calls->open(plan_.log, file_append | file_create).value;
        log = Native::from(plan_.lanes, log, 0);
        for (u32 round = 0; round < plan_.rounds; ++round) {
            Native::sync(plan_.lanes);
            count(plan_.calls->print(log, "warp ", warp_, " lane ", lane, " round ", round).ok());
        }
    }
    PENSTOCK_ONDEVICE void call(u32 round) const {
        const u32 number = warp_ << 16 | Native::lane() << 8 | round % 256;
        u32 answer = 0;
        const CallEnd end = plan_.calls->call({plan_.function, number, &number, 4, &answer, 4});
        count(end.ok() && answer == number + 1 && end.value == 2ll * number);
    }
    PENSTOCK_ONDEVICE void count(bool right) const {
        Native::template add<Scope::device>(right ? &plan_.tally->ok : &plan_.tally->wrong, 1u);
    }

    const CallsPlan& plan_;
    u32 warp_;
};

}  // namespace penstock::ondevice
