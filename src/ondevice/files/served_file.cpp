// See served_file.hpp.
#include "ondevice/files/served_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "os/file/file_stat.hpp"
#include "os/file/residency.hpp"

namespace penstock::ondevice {
namespace {

constexpr std::uint64_t kAskAgainNs = 100'000'000;
constexpr double kNoneCached = 0.005;  // the share of pages up to which the file counts as not cached

std::uint64_t size_of(const FileHandle& handle) {
    struct stat status {};
    if (::fstat(handle.buffered_fd, &status) != 0) throw Error(errno_info("size of", handle.name, errno));
    return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

ServedFile::ServedFile(const FileHandle& handle) : handle_(handle), size_(size_of(handle)) {
    if (size_ == 0) return;
    const std::uint64_t mapped_bytes = align_up(size_, os::mapping_page_bytes(handle.buffered_fd));
    void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, handle.buffered_fd, 0);
    if (memory != MAP_FAILED) mapping_ = {static_cast<std::byte*>(memory), mapped_bytes};
}

ServedFile::~ServedFile() {
    if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
}

std::uint64_t ServedFile::bytes_now() const noexcept {
    struct stat status {};
    return ::fstat(handle_.buffered_fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

Status ServedFile::check(const Request& request) const noexcept {
    if (request.operation == RequestOperation::flush) return Status::ok;
    if (request.bytes == 0) return Status::invalid;
    if (request.offset_bytes > size_ || request.bytes > size_ - request.offset_bytes) return Status::out_of_range;
    if (request.operation == RequestOperation::write && !handle_.writable) return Status::read_only;
    return Status::ok;
}

ServedFile::Cached ServedFile::how_much(std::uint64_t now) noexcept {
    std::uint64_t asked = asked_ns_.load(std::memory_order_relaxed);
    if (now < asked + kAskAgainNs && asked != 0) return cached_.load(std::memory_order_relaxed);
    if (!asked_ns_.compare_exchange_strong(asked, now, std::memory_order_relaxed)) {
        return cached_.load(std::memory_order_relaxed);
    }
    Cached found = Cached::none;
    try {
        const double fraction = os::residency(handle_.buffered_fd, 0, size_).fraction();
        // A fault of the mapping would read a page that is not cached, and no evidence tells such a read from a copy.
        found = fraction == 1.0 ? Cached::all : fraction > kNoneCached ? Cached::some : Cached::none;
    } catch (...) {  // the system does not say: descriptors serve cached ranges too
    }
    cached_.store(found, std::memory_order_relaxed);
    return found;
}

bool ServedFile::cached(std::uint64_t offset_bytes, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
    if (mapping_.empty()) return false;
    const Cached file = how_much(now_ns);
    if (file != Cached::some) return file == Cached::all;
    return os::cached_fraction(handle_.buffered_fd, offset_bytes, bytes).value_or(0) == 1.0;
}

}  // namespace penstock::ondevice
