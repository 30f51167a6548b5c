// AllowedCpus: those that a thread may run on, so that another one can be bound as it is.
//
// A preference: where the system does not tell them (more than 1024 CPUs) or does not take them, nothing is changed.
#pragma once

#include <sched.h>

namespace penstock::os {

class AllowedCpus {
  public:
    static AllowedCpus of_this_thread() noexcept {
        AllowedCpus found;
        found.is_known_ = ::sched_getaffinity(0, sizeof found.set_, &found.set_) == 0;
        return found;
    }
    void bind_this_thread() const noexcept {
        if (is_known_) static_cast<void>(::sched_setaffinity(0, sizeof set_, &set_));
    }
    bool operator==(const AllowedCpus& other) const noexcept {
        return is_known_ == other.is_known_ && CPU_EQUAL(&set_, &other.set_);
    }

  private:
    cpu_set_t set_{};
    bool is_known_ = false;
};

}  // namespace penstock::os
