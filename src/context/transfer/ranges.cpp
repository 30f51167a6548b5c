// See ranges.hpp.
#include "context/transfer/ranges.hpp"

#include <limits>
#include <utility>

namespace penstock::context {
namespace {

// An allocation, as far as it is known.
struct Known {
    const void* start = nullptr;
    std::uint64_t bytes = 0;
    bool ours = false;  // its bounds are certain; of mapped chunks (CUDA VMM) a device may know the first only
    bool inside(const FileRange& range, std::uint64_t length) const noexcept {
        const auto before = reinterpret_cast<std::uintptr_t>(range.memory) - reinterpret_cast<std::uintptr_t>(start);
        return before < bytes && length <= bytes - before;
    }
};

}  // namespace

void refuse_range(const FileRange& range, const char* operation, std::string cause, std::string advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = operation;
    info.file = range.file->handle().name;
    info.offset_bytes = range.offset_bytes;
    info.length_bytes = range.bytes;
    info.cause = std::move(cause);
    info.advice = std::move(advice);
    throw Error(std::move(info));
}

void check_offset(const FileRange& range, const char* operation, std::uint64_t file_bytes) {
    if (range.offset_bytes <= file_bytes) return;
    refuse_range(range, operation, "the offset is beyond the end of the file, at " + std::to_string(file_bytes),
                 "read within the file");
}

void check_numbers(const char* operation, const std::vector<FileRange>& ranges) {
    constexpr auto kLast = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::uint64_t total = 0;
    for (const FileRange& range : ranges) {
        if (range.offset_bytes > kLast || range.bytes > kLast - range.offset_bytes || range.bytes > kLast - total) {
            refuse_range(range, operation, "offset and length leave the range of file offsets", "");
        }
        total += range.bytes;
        if (range.memory == nullptr && range.bytes != 0) {
            refuse_range(range, operation, "the memory pointer is null", "give memory from Context::allocate or wrap");
        }
    }
}

std::vector<std::shared_ptr<Memory>> find_allocations(ContextState& context, const Submission& submission,
                                                      std::vector<FileRange>& ranges) {
    std::vector<std::shared_ptr<Memory>> memories;
    Known known;
    for (FileRange& range : ranges) {
        if (range.bytes == 0) continue;
        if (!known.inside(range, 1)) {
            known = {};
            if (auto memory = context.memory_at(range.memory)) {
                known = {memory->view().data, memory->view().bytes, true};
                memories.push_back(std::move(memory));
            } else if (!host_kind(submission.kind)) {
                const PointerInfo info = context.device->pointer_info(range.memory);
                known = info.known && info.bytes != 0 ? Known{info.base, info.bytes} : Known{range.memory};
            }
        }
        if (known.ours && !known.inside(range, range.bytes)) {
            refuse_range(range, to_string(submission.direction), "the memory's allocation ends before the range does",
                         "give a buffer as large as the range");
        }
        range.allocation = known.start;
    }
    return memories;
}

std::vector<FileRange> coalesce(std::vector<FileRange> ranges) {
    std::vector<FileRange> merged;
    merged.reserve(ranges.size());
    for (FileRange& range : ranges) {
        if (!merged.empty()) {
            FileRange& last = merged.back();
            if (last.file == range.file && last.allocation == range.allocation &&
                last.offset_bytes + last.bytes == range.offset_bytes &&
                static_cast<std::byte*>(last.memory) + last.bytes == range.memory) {
                last.bytes += range.bytes;
                continue;
            }
        }
        merged.push_back(std::move(range));
    }
    return merged;
}

Plan planned(const policy::RequestFacts& facts, const policy::MachineFacts& machine,
             const std::vector<FileRange>& ranges) {
    try {
        return policy::make_plan(facts, machine);
    } catch (const Error& error) {
        if (ranges.empty()) throw;
        ErrorInfo info = error.info();
        info.file = ranges.front().file->handle().name;
        throw Error(std::move(info));
    }
}

}  // namespace penstock::context
