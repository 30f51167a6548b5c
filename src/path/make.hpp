// The makers behind make_path, one for each row of base/path_traits.hpp. Each throws Error{unsupported} with the reason
// if this machine or build lacks what the path needs.
#pragma once

#include <algorithm>
#include <memory>

#include "base/path_traits.hpp"
#include "path/path.hpp"

namespace penstock::path {

inline constexpr unsigned kQueueDepthMax = 4096;  // the largest queue of aio and uring, in operations

// Paths that share a maker declare it twice, which C++ allows.
#define PENSTOCK_PATH_MAKER(kind, name, page_cache, family, io_uring, maker) \
    std::unique_ptr<Path> make_##maker(PathKind, const PathOptions&);
PENSTOCK_PATHS(PENSTOCK_PATH_MAKER)
#undef PENSTOCK_PATH_MAKER

// uring and uring_buffered register a file with their ring if at least this many operations on it follow each other:
// from there on registering saves time (docs/decisions/0007). Tests make paths with another number.
constexpr std::uint32_t kRegisterFrom = 32;
std::unique_ptr<Path> make_uring_registering(PathKind kind, const PathOptions& options, std::uint32_t register_from);

}  // namespace penstock::path
