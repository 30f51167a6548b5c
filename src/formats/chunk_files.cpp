// See chunk_files.hpp.
#include "formats/chunk_files.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace penstock::formats {
namespace {

constexpr std::size_t kMostChunkFiles = 32;
constexpr std::size_t kMostOfBatch = 128;
constexpr std::size_t kOthers = 32;  // descriptors that are left to the rest of the process
constexpr std::size_t kOfFile = 2;   // descriptors: through the page cache and past it

// Files for a third of the descriptors: those that are kept, and those of two batches, have a third each.
std::size_t share() noexcept {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMostOfBatch;
    const auto all = static_cast<std::size_t>(limit.rlim_cur);
    return all <= kOthers ? 1 : std::max<std::size_t>(1, (all - kOthers) / kOfFile / 3);
}

}  // namespace

std::size_t most_files_of_batch() noexcept { return std::min(kMostOfBatch, share()); }

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
    while (kept_.size() > std::min(kMostChunkFiles, share())) kept_.pop_back();
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
