// The concurrency that each path needs, and how it is fitted to the budget and to the caller's values.
#pragma once

#include "penstock/plan.hpp"
#include "policy/policy.hpp"

namespace penstock::policy {

// Returns workers, depth and chunk for moving `bytes` of this request by this path, before the caller's values apply.
Shape default_shape(PathKind path, const RequestFacts& request, const MachineFacts& machine, std::uint64_t bytes);

// Applies the caller's values and the budget. Throws Error{invalid_argument} if the caller's values cannot fit.
Shape fit_shape(Shape shape, const RequestFacts& request, const MachineFacts& machine, std::uint64_t bytes);

// Returns whether the waiting thread can make this read past the page cache itself. That needs no queue and no wake-up,
// and every caller can do it at the same time. Requires alignment, and a size for which one operation is as fast as
// several.
bool direct_on_caller(const RequestFacts& request, const MachineFacts& machine);

// Returns whether the waiting thread copies these bytes itself: between memory of the host and the page cache, which
// has what is read and room for what is written.
bool copied_on_caller(const RequestFacts& request, const MachineFacts& machine);

// Returns the staging memory of all workers of a shape, in bytes.
std::uint64_t staging_bytes(const Shape& shape) noexcept;

// Returns whether the number of operations, and not of bytes, decides the time of this request.
bool small_ranges(const RequestFacts& request);

inline constexpr std::size_t kInlineRanges = 8;  // more ranges are worth a queue


}  // namespace penstock::policy
