// CPU seconds of this process so far, user and system. The difference of two readings is the cost of a run.
#pragma once

#include <sys/resource.h>

namespace penstock::load {

struct CpuTime {
    double user_s = 0;
    double system_s = 0;
};

inline CpuTime cpu_time() noexcept {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);  // fails for wrong arguments only
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

}  // namespace penstock::load
