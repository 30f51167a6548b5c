// Ends a test program when nothing was done for a minute: a hang has no other end.
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
    // `done` grows while something is done, and outlives this.
    explicit Watchdog(const std::atomic<unsigned long long>& done)
        : thread_([this, &done] {
              unsigned long long before = ~0ull;
              for (int still = 0; !over_; ++still) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(20));
                  if (done != before) still = 0;
                  before = done;
                  if (still > 3000) {
                      std::fprintf(stderr, "nothing done for a minute\n");
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
    std::atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace penstock::ondevice
