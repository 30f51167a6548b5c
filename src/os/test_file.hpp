// TestFile: a file of a given size without a name, for tests of this layer.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "os/fd.hpp"

namespace penstock::os {

inline std::string disk_folder() { return testing::TempDir(); }  // TEST_TMPDIR, or /tmp when it is not set
inline std::string shm_folder() { return "/dev/shm"; }

class TestFile {
  public:
    TestFile(const std::string& folder, std::uint64_t bytes) {
        std::string name = folder + "/penstock-XXXXXX";
        fd_ = UniqueFd(::mkstemp(name.data()));
        ::unlink(name.c_str());
        const std::vector<char> block(1 << 20, 'p');
        for (std::uint64_t at = 0; at < bytes;) {
            const auto count = ::pwrite(fd_.get(), block.data(), std::min<std::uint64_t>(block.size(), bytes - at),
                                        static_cast<off_t>(at));
            if (count <= 0) throw std::runtime_error("cannot write a test file in " + folder);
            at += static_cast<std::uint64_t>(count);
        }
    }
    int fd() const { return fd_.get(); }

  private:
    UniqueFd fd_;
};

}  // namespace penstock::os
