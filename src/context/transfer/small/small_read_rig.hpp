// What tests of small reads share: a system that counts reads, and files with stamped bytes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/system.hpp"
#include "penstock/context.hpp"

namespace penstock {

using test::stamped;
using test::TempDirectory;
using test::write_file;

class CountedReads : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        ++reads;
        if (failure != 0) {
            errno = failure;
            return -1;
        }
        return System::pread(fd, memory, std::min(bytes, most_bytes), offset);
    }
    // The bytes of the file from `cold_from` on are not in the page cache.
    ssize_t pread_cached(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        ++cached_reads;
        if (refuses_to_tell) {
            errno = EOPNOTSUPP;
            return -1;
        }
        if (brings_from_beyond) return static_cast<ssize_t>(bytes);
        if (offset < cold_from) {
            return System::pread(fd, memory, std::min<std::size_t>(bytes, cold_from - offset), offset);
        }
        errno = EAGAIN;
        return -1;
    }
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        ++writes;
        if (failure != 0) {
            errno = failure;
            return -1;
        }
        return System::pwrite(fd, memory, std::min(bytes, most_bytes), offset);
    }
    std::atomic<int> reads{0}, cached_reads{0}, writes{0};
    std::uint64_t cold_from = UINT64_MAX;
    bool refuses_to_tell = false;
    bool brings_from_beyond = false;  // the bytes, which storage had
    int failure = 0;
    std::size_t most_bytes = SIZE_MAX;
};

class SmallReadTest : public testing::Test {
  protected:
    static constexpr std::uint64_t kFileBytes = 600 * kKiB + 100;

    void SetUp() override { write_file(directory_.file("data"), stamped(kFileBytes)); }
    Context make(ContextOptions options = {}) {
        options.device = "host";
        return context::make_context(options, {.system = &system_});
    }
    TempDirectory directory_;
    CountedReads system_;
};

// Without what differs from one read to the next.
inline std::string told(Evidence evidence) {
    evidence.seconds = 0;
    evidence.pinned_peak_bytes = 0;
    return evidence.to_json();
}

// The CPU reaches all memory of the emulated device.
inline std::vector<unsigned char> held(const MemoryView& memory) {
    const auto* begin = static_cast<const unsigned char*>(memory.data);
    return {begin, begin + memory.bytes};
}

}  // namespace penstock
