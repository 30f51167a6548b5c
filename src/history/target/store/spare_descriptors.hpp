// SpareDescriptors: descriptors that are held while what may be refused is done, for what must not be refused after it.
#pragma once

#include <array>
#include <string>

#include "os/fd.hpp"

namespace penstock::history {

class SpareDescriptors {
  public:
    // Throws Error, of the history, where the process has no more.
    explicit SpareDescriptors(const std::string& name);
    void release() { held_ = {}; }

  private:
    std::array<os::UniqueFd, 4> held_;
};

}  // namespace penstock::history
