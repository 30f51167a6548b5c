// See chunk_files.hpp.
#include "formats/chunk_files.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

namespace penstock::formats {
namespace {

constexpr std::size_t kMostChunkFiles = 32;
constexpr std::size_t kMostOfBatch = 128;
constexpr std::size_t kOthers = 32;    // descriptors that the rest of the process is taken to hold
constexpr std::size_t kToCome = 8;     // free descriptors that are left to the rest of the process
constexpr std::size_t kPlenty = 8192;  // descriptors: they are not counted
constexpr std::size_t kOfFile = 2;     // descriptors: through the page cache and past it

std::size_t descriptors() noexcept {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kPlenty;
    return static_cast<std::size_t>(limit.rlim_cur);
}

// Nothing where the system does not show them.
std::optional<std::size_t> open_descriptors() noexcept {
    const std::unique_ptr<DIR, int (*)(DIR*)> shown(::opendir("/proc/self/fd"), &::closedir);
    if (shown == nullptr) return std::nullopt;
    std::size_t count = 0;
    while (::readdir(shown.get()) != nullptr) ++count;
    return count;
}

// Files for a third of the descriptors: those that are kept, and those of two batches, have a third each.
std::size_t share(std::size_t all, std::size_t others) noexcept {
    return all <= others ? 1 : std::max<std::size_t>(1, (all - others) / kOfFile / 3);
}

std::size_t most_files_of_batch() noexcept {
    const std::size_t all = descriptors();
    if (all >= kPlenty) return kMostOfBatch;
    const std::optional<std::size_t> open = open_descriptors();
    return std::min(kMostOfBatch, share(all, open ? *open + kToCome : kOthers));
}

}  // namespace

bool FilesOfBatch::is_full(std::size_t files) noexcept {
    if (files < most_) return false;
    if (!is_counted_) most_ = most_files_of_batch();
    is_counted_ = true;
    return files >= most_;
}

File ChunkFiles::of(const std::string& name) {
    struct stat found {};
    if (writable_ || ::stat(name.c_str(), &found) != 0) return open(name);
    {
        const std::lock_guard lock(mutex_);
        const auto same = [&](const Kept& one) {
            return one.inode == found.st_ino && one.device == found.st_dev && one.name == name;
        };
        const auto here = std::find_if(kept_.begin(), kept_.end(), same);
        if (here != kept_.end()) {
            kept_.splice(kept_.begin(), kept_, here);
            return here->file;
        }
    }
    const File file = open(name);
    const std::lock_guard lock(mutex_);
    kept_.push_front({name, found.st_dev, found.st_ino, file});
    while (kept_.size() > std::min(kMostChunkFiles, share(descriptors(), kOthers))) kept_.pop_back();
    return file;
}

// Without a descriptor, those that are kept are let go.
File ChunkFiles::open(const std::string& name) {
    const OpenOptions options{.mode = writable_ ? OpenMode::read_write : OpenMode::read};
    try {
        return context_.open(name, options);
    } catch (const Error& error) {
        if (error.info().system_code != EMFILE && error.info().system_code != ENFILE) throw;
    }
    {
        const std::lock_guard lock(mutex_);
        kept_.clear();
    }
    return context_.open(name, options);
}

}  // namespace penstock::formats
