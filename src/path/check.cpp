// The one place that turns an invalid operation or the result of a system call into a Completion.
#include "path/check.hpp"

#include <cerrno>

namespace penstock::path {
namespace {

Completion refuse(std::uint64_t tag, ErrorCode status, int system_code) noexcept {
    return {.tag = tag, .bytes = 0, .status = status, .system_code = system_code};
}

bool aligned(const Operation& operation) noexcept {
    const FileHandle& file = *operation.file;
    return operation.offset_bytes % file.offset_alignment == 0 && operation.bytes % file.offset_alignment == 0 &&
           reinterpret_cast<std::uintptr_t>(operation.memory) % file.memory_alignment == 0;
}

}  // namespace

Completion check(const Operation& operation, const Capabilities& capabilities) noexcept {
    const std::uint64_t tag = operation.tag;
    const bool may_lend = capabilities.memory == OperationMemory::lent && operation.direction == Direction::read;
    if (operation.file == nullptr || operation.bytes == 0 || operation.bytes > capabilities.max_bytes) {
        return refuse(tag, ErrorCode::invalid_argument, EINVAL);
    }
    if (operation.memory == nullptr && !may_lend) return refuse(tag, ErrorCode::invalid_argument, EFAULT);
    if (operation.direction == Direction::write && !operation.file->writable) {
        return refuse(tag, ErrorCode::read_only, EROFS);
    }
    if (capabilities.bypasses_cache) {
        if (operation.file->direct_fd < 0) return refuse(tag, ErrorCode::unsupported, EOPNOTSUPP);
        if (!aligned(operation)) return refuse(tag, ErrorCode::invalid_argument, EINVAL);
    }
    return {.tag = tag};
}

Completion completion_of(std::uint64_t tag, std::int64_t result) noexcept {
    if (result >= 0) return {.tag = tag, .bytes = static_cast<std::uint64_t>(result)};
    const int error = static_cast<int>(-result);
    return refuse(tag, code_from_errno(error), error);
}

}  // namespace penstock::path
