// The constructors behind make_path, one for each file of this folder. Each throws Error{unsupported} with the reason
// when this machine or build cannot have the path.
#pragma once

#include <algorithm>
#include <memory>

#include "penstock/path.hpp"

namespace penstock::path {

std::unique_ptr<Path> make_null(const PathOptions& options);
std::unique_ptr<Path> make_memory(const PathOptions& options);
std::unique_ptr<Path> make_posix(PathKind kind, const PathOptions& options);  // buffered, direct
std::unique_ptr<Path> make_aio(const PathOptions& options);
// uring, uring_buffered. A file is registered with the ring for rows of `register_from` operations or more; by default
// where that begins to save time (docs/decisions/0007).
constexpr std::uint32_t kRegisterFrom = 32;
std::unique_ptr<Path> make_uring(PathKind kind, const PathOptions& options,
                                 std::uint32_t register_from = kRegisterFrom);
std::unique_ptr<Path> make_mmap(const PathOptions& options);

}  // namespace penstock::path
