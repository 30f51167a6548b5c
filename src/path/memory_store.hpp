// MemoryStore: files held in memory, found by FileHandle::id. The oracle of tests, and a path with no system under it.
//
// Thread-safe: each call is atomic, as pread and pwrite of a local file system are in practice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace penstock::path {

class MemoryStore {
  public:
    void put(std::uint64_t id, std::vector<std::byte> contents);  // makes or replaces
    void erase(std::uint64_t id);
    std::vector<std::byte> contents(std::uint64_t id) const;  // empty when there is no such file
    bool resize(std::uint64_t id, std::uint64_t bytes);       // false: no such file

    // Bytes moved, fewer at the end of the file; -EBADF when there is no such file, -ENOSPC beyond capacity. A write
    // past the end extends the file, with zeros in between.
    std::int64_t read(std::uint64_t id, std::uint64_t offset, std::span<std::byte> to) const;
    std::int64_t write(std::uint64_t id, std::uint64_t offset, std::span<const std::byte> from);

    // No file grows beyond this: a full disk, for tests.
    void set_capacity(std::uint64_t bytes_per_file);

  private:
    mutable std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::vector<std::byte>> files_;  // guarded by mutex_
    std::uint64_t capacity_ = UINT64_MAX;                              // guarded by mutex_
};

}  // namespace penstock::path
