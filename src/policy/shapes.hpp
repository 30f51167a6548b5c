// The concurrency each path wants, and fitting it to the budget and to the caller's wishes.
#pragma once

#include "penstock/plan.hpp"
#include "policy/policy.hpp"

namespace penstock::policy {

// Workers, depth and chunk for `bytes` of this request by this path, before the caller's wishes.
Shape default_shape(PathKind path, const RequestFacts& request, const MachineFacts& machine, std::uint64_t bytes);

// Applies the caller's wishes and the budget. Throws Error{invalid_argument} when what was asked cannot fit.
Shape fit_shape(Shape shape, const RequestFacts& request, const MachineFacts& machine, std::uint64_t bytes);

// Whether the thread that waits can itself read this past the page cache: no queue and no wake-up, and as many at once
// as there are callers. Only what is aligned, and small enough that one operation is as fast as several.
bool direct_on_caller(const RequestFacts& request, const MachineFacts& machine);

// Staging memory of all workers of a shape.
std::uint64_t staging_bytes(const Shape& shape) noexcept;

// Operations, not bytes, are what this request costs.
bool small_ranges(const RequestFacts& request);

inline constexpr std::size_t kInlineRanges = 8;  // more of them are worth a queue


}  // namespace penstock::policy
