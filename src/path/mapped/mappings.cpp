// See mappings.hpp. mutex_ guards the table only. Work on a file runs under the lock of its MappedFile.
#include "path/mapped/mappings.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include "path/mapped/mapped_file.hpp"

namespace penstock::path {

Mappings::Mappings(const MappingsOptions& options) : options_(options) {}

Mappings::~Mappings() = default;

std::shared_ptr<MappedFile> Mappings::find(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(id);
    return found == files_.end() ? nullptr : found->second;
}

std::shared_ptr<MappedFile> Mappings::find_or_make(const FileHandle& file) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<MappedFile>& mapped = files_[file.id];
    if (!mapped) mapped = std::make_shared<MappedFile>(options_);
    return mapped;
}

Mappings::View Mappings::view(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes) {
    return find_or_make(file)->view(file, offset_bytes, bytes);
}

void Mappings::copied(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes,
                      std::vector<Unneeded>& unneeded) {
    const std::shared_ptr<MappedFile> mapped = find_or_make(file);
    for (const std::span<std::byte> memory : mapped->copied(offset_bytes, bytes)) {
        if (!memory.empty()) unneeded.push_back({mapped, memory});
    }
}

void Mappings::unmap(const Unneeded& unneeded) noexcept {
    ::madvise(unneeded.memory.data(), unneeded.memory.size(), MADV_DONTNEED);
}

std::uint64_t Mappings::register_some(const FileHandle& file, std::uint64_t max_bytes, std::string& why) {
    const std::shared_ptr<MappedFile> mapped = find_or_make(file);
    std::uint64_t added = 0;
    while (added < max_bytes) {
        const std::uint64_t bytes = mapped->register_next(file, why);
        if (bytes == 0) break;
        added += bytes;
    }
    return added;
}

bool Mappings::register_all(const FileHandle& file, std::string& why) {
    while (register_some(file, options_.segment_bytes, why) > 0) {
    }
    return why.empty();
}

bool Mappings::registered(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes) const {
    const std::shared_ptr<MappedFile> mapped = find(file.id);
    return mapped != nullptr && mapped->registered(offset_bytes, bytes);
}

std::string Mappings::refusal(const FileHandle& file) const {
    const std::shared_ptr<MappedFile> mapped = find(file.id);
    return mapped == nullptr ? std::string() : mapped->refusal();
}

bool Mappings::still_inside(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes) noexcept {
    struct stat status {};
    if (::fstat(file.buffered_fd, &status) != 0) return false;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    return offset_bytes <= size && bytes <= size - offset_bytes;
}

void Mappings::forget(std::uint64_t id) {
    std::shared_ptr<MappedFile> last;  // destroyed, and so unmapped, after the lock is released
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(id);
    if (found == files_.end()) return;
    last = std::move(found->second);
    files_.erase(found);
}

}  // namespace penstock::path
