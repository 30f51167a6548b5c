// DiskWaits: whether a thread that reads out of the page cache waits for a disk instead.
//
// A read whose bytes are not in the page cache makes its thread give its core up. Such reads are left to those who keep
// many under way at once. What must stay true: what else a thread may wait for, such as a lock or a copy, lies between
// the end of some reads and the next begin().
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace penstock::os {

class DiskWaits {
  public:
    static constexpr int kReads = 64;  // between two looks, which take as long as half a read

    // `look`: it looks at so many reads together.
    explicit DiskWaits(long look = kReads) : look_(look) {}

    // The calling thread begins to read. What it waited for before does not count.
    void begin() noexcept { before_ = waits_of_thread(); }
    // It has made some reads since begin(), or the last call. Whether a quarter of the latest ones waited.
    bool many(std::size_t reads) noexcept {
        const long before = before_;
        begin();
        waits_ += before_ - before;
        reads_ += static_cast<long>(reads);
        if (reads_ < look_) return false;
        const bool often = waits_ > reads_ / 4;
        waits_ = reads_ = 0;
        return often;
    }

  private:
    static long waits_of_thread() noexcept {
        struct rusage usage {};
        return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
    }
    long look_, before_ = 0, waits_ = 0, reads_ = 0;
};

}  // namespace penstock::os
