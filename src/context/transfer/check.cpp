// See check.hpp.
#include "context/transfer/check.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace penstock::context {
namespace {

// An allocation, as far as it is known.
struct Known {
    const void* start = nullptr;
    std::uint64_t bytes = 0;
    bool ours = false;  // its bounds are certain; of mapped chunks (CUDA VMM) a device may know the first only
    bool inside(const Extent& extent, std::uint64_t length) const noexcept {
        const auto before = reinterpret_cast<std::uintptr_t>(extent.memory) - reinterpret_cast<std::uintptr_t>(start);
        return before < bytes && length <= bytes - before;
    }
};

[[noreturn]] void refuse(const Extent& extent, const char* operation, std::string cause, std::string advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = operation;
    info.file = extent.file->handle().name;
    info.offset_bytes = extent.offset_bytes;
    info.length_bytes = extent.bytes;
    info.cause = std::move(cause);
    info.advice = std::move(advice);
    throw Error(std::move(info));
}

// No sum of offsets and lengths may wrap; no memory may be null.
void check_numbers(const char* operation, const std::vector<Extent>& extents) {
    constexpr auto kLast = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::uint64_t total = 0;
    for (const Extent& extent : extents) {
        if (extent.offset_bytes > kLast || extent.bytes > kLast - extent.offset_bytes || extent.bytes > kLast - total) {
            refuse(extent, operation, "offset and length leave the range of file offsets", "");
        }
        total += extent.bytes;
        if (extent.memory == nullptr && extent.bytes != 0) {
            refuse(extent, operation, "the memory pointer is null", "give memory from Context::allocate or wrap");
        }
    }
}

// Sets the allocation of each extent and refuses extents that leave a buffer of this context. Answers those buffers.
std::vector<std::shared_ptr<Memory>> find_allocations(const Submission& submission, std::vector<Extent>& extents) {
    std::vector<std::shared_ptr<Memory>> memories;
    Known known;
    for (Extent& extent : extents) {
        if (extent.bytes == 0) continue;
        if (!known.inside(extent, 1)) {
            known = {};
            if (auto memory = submission.context.memory_at(extent.memory)) {
                known = {memory->view().data, memory->view().bytes, true};
                memories.push_back(std::move(memory));
            } else if (!submission.to_host()) {
                const PointerInfo info = submission.context.device->pointer_info(extent.memory);
                known = info.known && info.bytes != 0 ? Known{info.base, info.bytes} : Known{extent.memory};
            }
        }
        if (known.ours && !known.inside(extent, extent.bytes)) {
            refuse(extent, submission.operation(), "the memory's allocation ends before the range does",
                   "give a buffer as large as the range");
        }
        extent.allocation = known.start;
    }
    return memories;
}

bool continues(const Extent& last, const Extent& next) {
    return last.file == next.file && last.allocation == next.allocation &&
           last.offset_bytes + last.bytes == next.offset_bytes &&
           static_cast<std::byte*>(last.memory) + last.bytes == next.memory;
}

// Extents that continue each other in file and allocation become one: fewer, larger operations. A device refuses a copy
// that crosses from one allocation into another, even where the two are neighbours.
std::vector<Extent> join(std::vector<Extent> extents) {
    if (extents.size() < 2) return extents;
    std::vector<Extent> joined;
    joined.reserve(extents.size());
    for (Extent& extent : extents) {
        if (!joined.empty() && continues(joined.back(), extent)) {
            joined.back().bytes += extent.bytes;
        } else {
            joined.push_back(std::move(extent));
        }
    }
    return joined;
}

// A small blocking read runs on the calling thread and sees by itself where the file ends, so the system call that asks
// for the size is spared. Where such a read brings no byte, File::read checks its offset against the size afterwards.
bool meets_the_end(const Submission& submission, const std::vector<Extent>& extents) {
    const TransferOptions& options = submission.options;
    const PathKind path = submission.path();
    const bool defaults = (path == PathKind::automatic || path == PathKind::buffered) && options.workers == 0 &&
                          submission.context.options.workers == 0 && options.depth == 0 && !options.full_evidence;
    return defaults && submission.reading() && submission.blocking && options.deadline.is_never() &&
           extents.size() == 1 && extents.front().bytes <= policy::kInlineBytes;
}

// Sets how many bytes of each extent a read finds in its file.
void find_ends(const Submission& submission, std::vector<Extent>& extents) {
    const OpenFile* sized = nullptr;  // extents often share one file: its size is asked once
    std::uint64_t size = 0;
    for (Extent& extent : extents) {
        if (extent.file.get() != sized) size = extent.file->size_bytes();
        sized = extent.file.get();
        check_offset(extent, submission.operation(), size);
        extent.bytes_in_file = std::min(extent.bytes, size - extent.offset_bytes);
    }
}

void check_writable(const Submission& submission, const std::vector<Extent>& extents) {
    for (const Extent& extent : extents) {
        if (extent.file->handle().writable) continue;
        refuse(extent, submission.operation(), "the file was opened for reading", "open it with OpenMode::read_write");
    }
}

std::optional<std::uint64_t> first_end(const std::vector<Extent>& extents) {
    std::uint64_t position = 0;
    for (const Extent& extent : extents) {
        if (extent.bytes_in_file < extent.bytes) return position + extent.bytes_in_file;
        position += extent.bytes;
    }
    return std::nullopt;
}

}  // namespace

void check_offset(const Extent& extent, const char* operation, std::uint64_t file_bytes) {
    if (extent.offset_bytes <= file_bytes) return;
    refuse(extent, operation, "the offset is beyond the end of the file, at " + std::to_string(file_bytes),
           "read within the file");
}

Checked check(const Submission& submission, std::vector<Extent> extents) {
    Checked checked;
    check_numbers(submission.operation(), extents);
    checked.memories = find_allocations(submission, extents);
    checked.extents = join(std::move(extents));
    for (Extent& extent : checked.extents) extent.bytes_in_file = extent.bytes;
    if (!submission.reading()) {
        check_writable(submission, checked.extents);
    } else if (!meets_the_end(submission, checked.extents)) {
        find_ends(submission, checked.extents);
        checked.end_position = first_end(checked.extents);
    }
    return checked;
}

}  // namespace penstock::context
