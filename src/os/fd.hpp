// UniqueFd: owns a file descriptor. It closes it through the System it was given, so that tests see every close.
#pragma once

#include <utility>

#include "os/system.hpp"

namespace penstock::os {

class UniqueFd {
  public:
    UniqueFd() noexcept = default;
    explicit UniqueFd(int fd, System& system = real_system()) noexcept : fd_(fd), system_(&system) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), system_(other.system_) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
            system_ = other.system_;
        }
        return *this;
    }
    ~UniqueFd() { reset(); }

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    int release() noexcept { return std::exchange(fd_, -1); }
    // Returns the result of close, which reports errors of delayed writes. Returns 0 if there was nothing to close.
    int reset() noexcept { return fd_ >= 0 ? system_->close(std::exchange(fd_, -1)) : 0; }

  private:
    int fd_ = -1;
    System* system_ = nullptr;
};

}  // namespace penstock::os
