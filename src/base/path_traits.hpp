// What each path is, in one table. A new path gets a row here, and all code that asks what a path is reads this table.
//
// Requires: the rows are in the order of PathKind, and a path's Capabilities agree with its row, which the conformance
// kit checks. Facts that depend on a path object, such as its depth, are in Capabilities. The table is a list macro, so
// that src/path/make.hpp and factory.cpp declare and call the maker of each row without a list of their own.
#pragma once

#include <array>
#include <cstddef>

#include "penstock/types.hpp"

namespace penstock {

enum class PageCacheUse : std::uint8_t { none, through, past };  // none: the path moves no bytes of a file
enum class PathFamily : std::uint8_t { plain, queue, cufile };  // queue: a worker can have several operations in flight

struct PathTraits {
    PathKind kind;
    const char* name;
    PageCacheUse page_cache;
    PathFamily family;
    bool io_uring;  // needs io_uring
};

// A row is given to `row`. path::make_<maker>(kind, options) makes its path.
// clang-format off
//      kind            name              page cache  family  io_uring  maker
#define PENSTOCK_PATHS(row)                                                           \
    row(null,           "null",           none,       plain,  false,    null)         \
    row(memory,         "memory",         none,       plain,  false,    memory)       \
    row(buffered,       "buffered",       through,    plain,  false,    posix)        \
    row(direct,         "direct",         past,       plain,  false,    posix)        \
    row(aio,            "aio",            past,       queue,  false,    aio)          \
    row(uring,          "uring",          past,       queue,  true,     uring)        \
    row(uring_buffered, "uring-buffered", through,    queue,  true,     uring)        \
    row(mmap,           "mmap",           through,    plain,  false,    mmap)         \
    row(gds,            "gds",            none,       cufile, false,    cufile_path)  \
    row(gds_compat,     "gds-compat",     none,       cufile, false,    cufile_path)  \
    row(gds_batch,      "gds-batch",      none,       cufile, false,    cufile_path)  \
    row(gds_stream,     "gds-stream",     none,       cufile, false,    cufile_path)
// clang-format on

#define PENSTOCK_PATH_TRAITS(kind, name, page_cache, family, io_uring, maker) \
    PathTraits{PathKind::kind, name, PageCacheUse::page_cache, PathFamily::family, io_uring},
inline constexpr std::array<PathTraits, kPathKinds> kPathTraits{
    {{PathKind::automatic, "auto", PageCacheUse::none, PathFamily::plain, false},
     PENSTOCK_PATHS(PENSTOCK_PATH_TRAITS)}};
#undef PENSTOCK_PATH_TRAITS
static_assert([] {
    for (std::size_t i = 0; i < kPathTraits.size(); ++i) {
        if (kPathTraits[i].kind != static_cast<PathKind>(i)) return false;
    }
    return true;
}());

constexpr const PathTraits& traits_of(PathKind path) noexcept { return kPathTraits[static_cast<std::size_t>(path)]; }

// The path needs aligned operations on a descriptor that was opened with O_DIRECT.
constexpr bool bypasses_cache(PathKind path) noexcept { return traits_of(path).page_cache == PageCacheUse::past; }
constexpr bool is_cufile(PathKind path) noexcept { return traits_of(path).family == PathFamily::cufile; }

}  // namespace penstock
