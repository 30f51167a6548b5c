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
std::unique_ptr<Path> make_uring(PathKind kind, const PathOptions& options);  // uring, uring_buffered
std::unique_ptr<Path> make_mmap(const PathOptions& options);

}  // namespace penstock::path
