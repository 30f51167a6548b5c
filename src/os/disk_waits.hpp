// DiskWaits: whether a thread that reads out of the page cache waits for a disk instead.
//
// A read whose bytes are not in the page cache makes its thread give its core up. Such reads are left to those who keep
// many under way at once. What must stay true: only waits inside reads are counted (see System::waits_of_thread), and
// none for a lock or a copy.
#pragma once

#include <cstddef>

namespace penstock::os {

class DiskWaits {
  public:
    static constexpr int kReads = 64;  // between two looks, which take as long as half a read

    // `look`: it judges so many reads together.
    explicit DiskWaits(long look = kReads) : look_(look) {}

    // A thread has made some reads more, in which it has waited so often. Whether a quarter of the latest ones waited.
    bool many(std::size_t reads, long waits) noexcept {
        waits_ += waits;
        reads_ += static_cast<long>(reads);
        if (reads_ < look_) return false;
        const bool often = waits_ > reads_ / 4;
        waits_ = reads_ = 0;
        return often;
    }

  private:
    long look_, waits_ = 0, reads_ = 0;
};

}  // namespace penstock::os
