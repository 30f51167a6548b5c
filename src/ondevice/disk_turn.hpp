// Who talks to the disk when several service threads have large requests for it.
//
// The kernel joins neighbouring requests that one submitter brings in the order they lie in; those of several threads
// come interleaved, each with a part of the order. So the thread that has a large request first
// becomes the one that submits, and others leave theirs with it until it has nothing more under way. It is awake all
// that time, so nothing that was left waits for a sleeper.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "penstock/ondevice/request.hpp"

namespace penstock::ondevice {

inline constexpr std::uint32_t kLargeRequest = 32 * 1024;  // bytes; smaller ones are bound by submitting, not by order

class DiskTurn {
  public:
    struct Left {
        std::uint32_t slot = 0;
        Request request{};
    };

    // True: the caller submits, now and until resign() says that it is over. False: what it had was left.
    bool take_or_leave(const void* caller, std::vector<Left>& requests) {
        const std::lock_guard lock(mutex_);
        if (owner_ == nullptr) owner_ = caller;
        if (owner_ == caller) return true;
        left_.insert(left_.end(), requests.begin(), requests.end());
        requests.clear();
        return false;
    }

    // What others left, for the one whose turn it is.
    std::vector<Left> collect() {
        const std::lock_guard lock(mutex_);
        return std::exchange(left_, {});
    }

    // The turn is over, unless something was left meanwhile: then that, and the turn goes on.
    std::vector<Left> resign() {
        const std::lock_guard lock(mutex_);
        if (left_.empty()) owner_ = nullptr;
        return std::exchange(left_, {});
    }

  private:
    std::mutex mutex_;
    const void* owner_ = nullptr;
    std::vector<Left> left_;
};

}  // namespace penstock::ondevice
