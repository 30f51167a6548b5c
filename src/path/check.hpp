// What every path checks of an operation before the system sees it, so that each says the same thing of the same
// mistake.
#pragma once

#include "penstock/path.hpp"

namespace penstock::path {

// ok, or the completion that this operation gets instead of being tried: no file, a write to a read-only file, no
// O_DIRECT descriptor, offset, length or memory not aligned for O_DIRECT, no memory, more than max_bytes.
Completion check(const Operation& operation, const Capabilities& capabilities) noexcept;

// The descriptor that a path with these capabilities uses.
inline int fd_of(const FileHandle& file, const Capabilities& capabilities) noexcept {
    return capabilities.bypasses_cache ? file.direct_fd : file.buffered_fd;
}

// `result` as system calls count: bytes, or the negative of an errno.
Completion completion_of(std::uint64_t tag, std::int64_t result) noexcept;

}  // namespace penstock::path
