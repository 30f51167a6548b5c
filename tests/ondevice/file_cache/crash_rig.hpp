// A small page cache of the test's device over files whose words tell a version, for tests of what is in the files
// after the cache, the disk or the process came to a bad end. The service reaches all files, even those that a GPU
// could map, so that the faults of its system act on them.
#pragma once

#include <cstring>
#include <vector>

#include "ondevice/cache/cache_users_rig.hpp"
#include "ondevice/cache/file_cache.hpp"
#include "ondevice/device_rig.hpp"

namespace penstock::ondevice {

constexpr u64 kCrashPage = 4096, kCrashPages = 64, kCrashFrames = 16;

// The file before any store: version 0.
inline std::vector<u8> crash_file() { return users_file(0, kCrashPages * kCrashPage); }

// The lowest version of a page's words; ~0: a word is not of this page.
inline u64 lowest_version(const std::vector<u8>& file, u64 page) {
    u64 lowest = ~0ull;
    for (u64 i = 0; i < kCrashPage / 8; ++i) {
        const u64 index = page * (kCrashPage / 8) + i;
        u64 word = 0;
        std::memcpy(&word, &file[index * 8], 8);
        const u64 version = word >> 36;
        if (word != users_word(0, index, version)) return ~0ull;
        lowest = std::min(lowest, version);
    }
    return lowest;
}

class CrashCache {
  public:
    explicit CrashCache(const FileSet& files, os::System* system = nullptr)
        : cache_(*device_, {files}, options(system)) {}

    // Stores `version` to every word of a page.
    Status store(u64 page, u64 version) {
        std::vector<u64> items(kCrashPage / 8);
        for (u64 i = 0; i < items.size(); ++i) items[i] = users_word(0, page * items.size() + i, version);
        memory_.write(page_, items.data(), kCrashPage);
        return move(CacheTask::write, page);
    }
    Status load(u64 page) { return move(CacheTask::read, page); }
    Status flush() { return cache_.flush().status; }

  private:
    static FileCacheOptions options(os::System* system) {
        FileCacheOptions options;
        options.page_bytes = kCrashPage;
        options.cache_bytes = kCrashFrames * kCrashPage;
        options.threads = 2;
        options.slots = 8;
        options.wait_ns = 60'000'000'000;
        options.map = false;
        options.system = system;
        return options;
    }
    Status move(CacheTask task, u64 page) {
        CacheWork work{};
        work.task = task;
        work.first = page * kCrashPage;
        work.count = kCrashPage;
        work.memory = page_.data;
        return cache_.run(0, work).status;
    }

    const std::shared_ptr<Device> device_ = test_device();
    DeviceMemory memory_{*device_, MemoryKind::device};
    const DmaBlock page_ = memory_.allocate(kCrashPage);
    FileCache cache_;
};

}  // namespace penstock::ondevice
