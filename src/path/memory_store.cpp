// MemoryStore: one lock guards all files. Tests compare with it, so it is simple and not fast.
#include "path/memory_store.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace penstock::path {

void MemoryStore::put(std::uint64_t id, std::vector<std::byte> contents) {
    const std::lock_guard lock(mutex_);
    files_[id] = std::move(contents);
}

void MemoryStore::erase(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    files_.erase(id);
}

std::vector<std::byte> MemoryStore::contents(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    const auto file = files_.find(id);
    return file == files_.end() ? std::vector<std::byte>{} : file->second;
}

bool MemoryStore::resize(std::uint64_t id, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto file = files_.find(id);
    if (file == files_.end()) return false;
    file->second.resize(bytes);
    return true;
}

std::int64_t MemoryStore::read(std::uint64_t id, std::uint64_t offset, std::span<std::byte> to) const {
    const std::lock_guard lock(mutex_);
    const auto file = files_.find(id);
    if (file == files_.end()) return -EBADF;
    const std::vector<std::byte>& bytes = file->second;
    if (offset >= bytes.size()) return 0;
    const std::size_t count = std::min<std::size_t>(to.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, to.begin());
    return static_cast<std::int64_t>(count);
}

std::int64_t MemoryStore::write(std::uint64_t id, std::uint64_t offset, std::span<const std::byte> from) {
    const std::lock_guard lock(mutex_);
    const auto file = files_.find(id);
    if (file == files_.end()) return -EBADF;
    if (offset >= capacity_) return -ENOSPC;
    const std::size_t count = std::min<std::size_t>(from.size(), capacity_ - offset);
    std::vector<std::byte>& bytes = file->second;
    if (bytes.size() < offset + count) bytes.resize(offset + count);
    std::copy_n(from.begin(), count, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    return static_cast<std::int64_t>(count);
}

void MemoryStore::set_capacity(std::uint64_t bytes_per_file) {
    const std::lock_guard lock(mutex_);
    capacity_ = bytes_per_file;
}

}  // namespace penstock::path
