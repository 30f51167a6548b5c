// Locks by which writers of a file that is there are known.
//
// A writer that changes a file in place holds an flock of it alone. A history, whose file others read as it grows,
// shares that with them, and holds a byte far behind all data.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::os {

inline constexpr std::int64_t kHistoryLockAt = (std::int64_t{1} << 62) + 1024;

// Whether a history writes the file of a descriptor. False where the file system does not say.
bool is_of_history(int fd) noexcept;

// Before the file of this name is replaced. Does nothing where there is none, or where the file system has no locks.
// Throws Error{io_error} where a writer, of this process too, has one of the locks.
void need_no_writer(const std::string& name);

}  // namespace penstock::os
