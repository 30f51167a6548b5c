// What each path is, in one table. A new path gets a row here, and all code that asks what a path is reads this table.
//
// Requires: the rows are in the order of PathKind, and a path's Capabilities agree with its row, which the conformance
// kit checks. Facts that depend on a path object, such as its depth, are in Capabilities.
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
    bool io_uring = false;
};

inline constexpr std::array<PathTraits, kPathKinds> kPathTraits{{
    {PathKind::automatic, "auto", PageCacheUse::none, PathFamily::plain},
    {PathKind::null, "null", PageCacheUse::none, PathFamily::plain},
    {PathKind::memory, "memory", PageCacheUse::none, PathFamily::plain},
    {PathKind::buffered, "buffered", PageCacheUse::through, PathFamily::plain},
    {PathKind::direct, "direct", PageCacheUse::past, PathFamily::plain},
    {PathKind::aio, "aio", PageCacheUse::past, PathFamily::queue},
    {PathKind::uring, "uring", PageCacheUse::past, PathFamily::queue, true},
    {PathKind::uring_buffered, "uring-buffered", PageCacheUse::through, PathFamily::queue, true},
    {PathKind::mmap, "mmap", PageCacheUse::through, PathFamily::plain},
    {PathKind::gds, "gds", PageCacheUse::none, PathFamily::cufile},
    {PathKind::gds_compat, "gds-compat", PageCacheUse::none, PathFamily::cufile},
    {PathKind::gds_batch, "gds-batch", PageCacheUse::none, PathFamily::cufile},
    {PathKind::gds_stream, "gds-stream", PageCacheUse::none, PathFamily::cufile},
}};
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
