// Ends a test program in which nothing was done for a minute: a hang has no other end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace penstock::ondevice {

class Watchdog {
  public:
    // `done` grows while something is done. Requires: it outlives this. The watchdog counts its looks, and not the
    // time, so it does not end a program that the system stopped for long.
    explicit Watchdog(const std::atomic<unsigned long long>& done,
                      std::chrono::milliseconds patience = std::chrono::minutes(1))
        : thread_([this, &done, patience] {
              unsigned long long before = ~0ull;
              for (int still = 0; !over_; ++still) {
                  std::this_thread::sleep_for(kLook);
                  if (done != before) still = 0;
                  before = done;
                  if (still > patience / kLook) {
                      std::fprintf(stderr, "nothing done for %lld ms\n", static_cast<long long>(patience.count()));
                      std::abort();
                  }
              }
          }) {}
    ~Watchdog() {
        over_ = true;
        thread_.join();
    }
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

  private:
    static constexpr std::chrono::milliseconds kLook{20};
    std::atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace penstock::ondevice
