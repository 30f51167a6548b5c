// MemoryStore: files held in memory, found by FileHandle::id. Tests compare real paths with it, because no part of the
// system is below it.
//
// Thread-safe. Each call is atomic, as pread and pwrite of a local file system are in practice.
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
    void put(std::uint64_t id, std::vector<std::byte> contents);  // makes the file or replaces its contents
    void erase(std::uint64_t id);
    std::vector<std::byte> contents(std::uint64_t id) const;  // empty if there is no such file
    bool resize(std::uint64_t id, std::uint64_t bytes);       // false: there is no such file

    // Return the number of bytes moved, which is less than asked for at the end of the file or of the capacity. Return
    // -EBADF if there is no such file, and -ENOSPC for a write that starts at or past the capacity. A write past the
    // end fills the gap with zeros.
    std::int64_t read(std::uint64_t id, std::uint64_t offset, std::span<std::byte> to) const;
    std::int64_t write(std::uint64_t id, std::uint64_t offset, std::span<const std::byte> from);

    // Files cannot grow beyond this. Tests set it to imitate a full disk.
    void set_capacity(std::uint64_t bytes_per_file);

  private:
    mutable std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::vector<std::byte>> files_;  // guarded by mutex_
    std::uint64_t capacity_ = UINT64_MAX;                              // guarded by mutex_
};

}  // namespace penstock::path
