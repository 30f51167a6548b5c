// How a thread that serves device code behaves: when it sleeps, and which signal it answers by an error.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

#include "penstock/types.hpp"

namespace penstock::ondevice {

// Blocks the signal of a write past the process's limit of file sizes: the write fails with EFBIG, and the process
// lives.
inline void answer_file_size_limits() noexcept {
    sigset_t limits;
    ::sigemptyset(&limits);
    ::sigaddset(&limits, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &limits, nullptr);
}

// When a thread looks for work again. It spins while there is work and for a moment after it, and then sleeps ever
// longer: at most `sleep_us` a moment after it had work, and later a 64th of the time without work, up to 2 ms.
class Naps {
  public:
    Naps(std::uint32_t spin_us, std::uint32_t sleep_us) : spin_(spin_us), sleep_(sleep_us) {}

    void worked() {
        worked_ = Clock::now();
        nap_ = std::chrono::microseconds(1);
    }
    // Called after a look that found nothing.
    void rest() {
        const auto idle = Clock::now() - worked_;
        if (idle <= spin_) return;
        std::this_thread::sleep_for(nap_);
        nap_ = std::min(nap_ * 2, longest(idle));
    }

  private:
    static constexpr std::chrono::microseconds kLongestNap{2000};
    static constexpr int kIdleShare = 64;  // a nap lasts the time without work divided by this

    std::chrono::microseconds longest(Clock::duration idle) const noexcept {
        const auto share = std::chrono::duration_cast<std::chrono::microseconds>(idle / kIdleShare);
        return std::max(sleep_, std::min(share, kLongestNap));
    }

    const std::chrono::microseconds spin_, sleep_;
    Clock::time_point worked_ = Clock::now();
    std::chrono::microseconds nap_{1};
};

}  // namespace penstock::ondevice
