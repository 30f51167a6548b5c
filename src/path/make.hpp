// The constructors behind make_path. Each throws Error{unsupported} with the reason if this machine or build lacks what
// the path needs.
#pragma once

#include <algorithm>
#include <memory>

#include "penstock/path.hpp"

namespace penstock::path {

inline constexpr unsigned kQueueDepthMax = 4096;  // the largest queue of aio and uring, in operations

std::unique_ptr<Path> make_null(const PathOptions& options);
std::unique_ptr<Path> make_memory(const PathOptions& options);
std::unique_ptr<Path> make_posix(PathKind kind, const PathOptions& options);  // buffered, direct
std::unique_ptr<Path> make_aio(const PathOptions& options);
// uring and uring_buffered. The path registers a file with its ring if at least `register_from` operations on it follow
// each other. The default is where registering begins to save time (docs/decisions/0007).
constexpr std::uint32_t kRegisterFrom = 32;
std::unique_ptr<Path> make_uring(PathKind kind, const PathOptions& options,
                                 std::uint32_t register_from = kRegisterFrom);
std::unique_ptr<Path> make_mmap(const PathOptions& options);

}  // namespace penstock::path
