// See mapped_file.hpp. A mapping reaches to the next segment boundary past the end of the file, so that a growing file
// seldom needs a new part. No code touches memory past the end, because every view is cut at the size that fstat gives.
// On hugetlbfs the mapping ends at the file's size, because mapping more would make the file grow.
#include "path/mapped/mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/file/file_stat.hpp"

namespace penstock::path {
namespace {

constexpr std::uint64_t kBlockMax = 16 * kMiB;  // unmapped in one piece, because each unmapping interrupts every CPU
constexpr std::size_t kBlocksMax = 8;           // how many partly read blocks stay mapped

bool size_of(int fd, std::uint64_t& size) noexcept {
    struct stat status {};
    if (::fstat(fd, &status) != 0) return false;
    size = static_cast<std::uint64_t>(status.st_size);
    return true;
}

}  // namespace

MappedFile::MappedFile(const MappingsOptions& options)
    : options_(options), block_bytes_(std::min(kBlockMax, options.segment_bytes)) {}

MappedFile::~MappedFile() {
    for (const PinnedSegment& segment : segments_) options_.device->unregister_host(segment.memory);
    for (const MappedPart& part : parts_) ::munmap(part.memory, part.bytes);
}

int MappedFile::cover(const FileHandle& file, std::uint64_t size) {
    const std::uint64_t mapped = parts_.empty() ? 0 : parts_.back().start + parts_.back().bytes;
    if (size <= mapped) return 0;
    // Doubling keeps the number of parts low when a file grows in small steps.
    const std::uint64_t end = os::of_huge_pages(file.buffered_fd)
                                  ? size
                                  : align_up(mapped == 0 ? size : std::max(size, 2 * mapped), options_.segment_bytes);
    void* memory = ::mmap(nullptr, end - mapped, PROT_READ | (file.writable ? PROT_WRITE : 0), MAP_SHARED,
                          file.buffered_fd, static_cast<off_t>(mapped));
    if (memory == MAP_FAILED) return errno;
    // Without this advice, unmapping marks each page as accessed, under the same lock that makes pread slow.
    ::madvise(memory, end - mapped, MADV_SEQUENTIAL);
    parts_.push_back({mapped, end - mapped, static_cast<std::byte*>(memory)});
    return 0;
}

const MappedFile::MappedPart* MappedFile::part_at(std::uint64_t offset) const noexcept {
    for (const MappedPart& part : parts_) {
        if (offset >= part.start && offset - part.start < part.bytes) return &part;
    }
    return nullptr;
}

const MappedFile::PinnedSegment* MappedFile::segment_at(std::uint64_t offset) const noexcept {
    auto after = std::upper_bound(segments_.begin(), segments_.end(), offset,
                                  [](std::uint64_t at, const PinnedSegment& segment) { return at < segment.start; });
    if (after == segments_.begin()) return nullptr;
    --after;
    return offset - after->start < after->bytes ? &*after : nullptr;
}

Mappings::View MappedFile::view(const FileHandle& file, std::uint64_t offset, std::uint64_t bytes) {
    std::uint64_t size = 0;
    if (!size_of(file.buffered_fd, size)) return {.error = errno};
    if (offset >= size) return {};
    const std::lock_guard lock(mutex_);
    if (const int error = cover(file, size); error != 0) return {.error = error};
    const MappedPart& part = *part_at(offset);
    const std::uint64_t length = std::min({bytes, size - offset, part.start + part.bytes - offset});
    const PinnedSegment* segment = segment_at(offset);
    if (segment == nullptr) return {part.memory + (offset - part.start), length, false, 0};
    return {part.memory + (offset - part.start), std::min(length, segment->start + segment->bytes - offset), true, 0};
}

std::span<std::byte> MappedFile::memory_of(std::uint64_t block) const noexcept {
    const MappedPart* part = part_at(block * block_bytes_);
    if (part == nullptr) return {};
    const std::uint64_t start = block * block_bytes_ - part->start;
    return {part->memory + start, std::min(block_bytes_, part->bytes - start)};
}

std::vector<std::span<std::byte>> MappedFile::copied(std::uint64_t offset, std::uint64_t bytes) {
    std::vector<std::span<std::byte>> ready;
    const std::lock_guard lock(mutex_);
    for (std::uint64_t at = offset; at < offset + bytes;) {
        const std::uint64_t index = at / block_bytes_;
        const std::uint64_t inside = std::min(offset + bytes, (index + 1) * block_bytes_) - at;
        auto block = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.index == index; });
        if (block == blocks_.end()) block = blocks_.insert(blocks_.end(), {index, 0});
        block->copied_bytes += inside;
        if (block->copied_bytes >= block_bytes_) {
            ready.push_back(memory_of(index));
            blocks_.erase(block);
        }
        at += inside;
    }
    while (blocks_.size() > kBlocksMax) {
        ready.push_back(memory_of(blocks_.front().index));
        blocks_.pop_front();
    }
    return ready;
}

bool MappedFile::registered(std::uint64_t offset, std::uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    while (bytes > 0) {
        const PinnedSegment* segment = segment_at(offset);
        if (segment == nullptr) return false;
        const std::uint64_t inside = std::min(bytes, segment->start + segment->bytes - offset);
        offset += inside;
        bytes -= inside;
    }
    return true;
}

std::string MappedFile::refusal() const {
    const std::lock_guard lock(mutex_);
    return refusal_;
}

// A segment starts where the previous one ends. It ends at the first of these: the page with the file's last byte, a
// segment boundary, the end of its part.
bool MappedFile::next_segment(std::uint64_t size, PinnedSegment& segment) const noexcept {
    const std::uint64_t start = segments_.empty() ? 0 : segments_.back().start + segments_.back().bytes;
    if (start >= size) return false;
    const MappedPart& part = *part_at(start);
    const std::uint64_t boundary = align_down(start, options_.segment_bytes) + options_.segment_bytes;
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t end = std::min({boundary, align_up(size, page), part.start + part.bytes});
    segment = {start, end - start, part.memory + (start - part.start)};
    return true;
}

std::uint64_t MappedFile::register_next(const FileHandle& file, std::string& why) {
    const std::lock_guard one_at_a_time(registering_);
    PinnedSegment segment;
    {
        std::uint64_t size = 0;
        const int error = size_of(file.buffered_fd, size) ? 0 : errno;
        const std::lock_guard lock(mutex_);
        const int failed = error != 0 ? error : cover(file, size);
        if (failed != 0 && refusal_.empty())
            refusal_ = std::string("the file cannot be mapped: ") + std::strerror(failed);
        if (options_.device == nullptr && refusal_.empty()) refusal_ = "no device to register with";
        why = refusal_;
        if (!refusal_.empty() || !next_segment(size, segment)) return 0;
    }
    // Not under mutex_: pinning a segment takes milliseconds, and transfers must go on meanwhile.
    const bool done = options_.device->register_host(segment.memory, segment.bytes, !file.writable, why);
    const std::lock_guard lock(mutex_);
    if (!done) {
        refusal_ = why.empty() ? "the device refused the mapping without a reason" : why;
        why = refusal_;
        return 0;
    }
    segments_.push_back(segment);
    return segment.bytes;
}

}  // namespace penstock::path
