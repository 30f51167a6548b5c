// Checks that every path makes before it hands an operation to the system, so that all paths report the same mistake in
// the same way.
#pragma once

#include "path/path.hpp"

namespace penstock::path {

// Returns a Completion with status ok if the operation may be tried. Otherwise returns the Completion that the caller
// gets in its place: no file, no memory, a write to a read-only file, more than max_bytes, no O_DIRECT descriptor, or
// an offset, length or address that is not aligned for O_DIRECT.
Completion check(const Operation& operation, const Capabilities& capabilities) noexcept;

// Returns the descriptor that a path with these capabilities uses.
inline int fd_of(const FileHandle& file, const Capabilities& capabilities) noexcept {
    return capabilities.bypasses_cache ? file.direct_fd : file.buffered_fd;
}

// Requires: `result` is a number of bytes, or the negative of an errno.
Completion completion_of(std::uint64_t tag, std::int64_t result) noexcept;

}  // namespace penstock::path
