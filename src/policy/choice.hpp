// Chooses the path of a part of a request: by rule, and then by measurement if there is one.
#pragma once

#include <cstdint>
#include <string>

#include "policy/policy.hpp"

namespace penstock::policy {

struct Choice {
    PathKind path = PathKind::buffered;
    std::string reason;
    PathCost cost;  // predicted for `path`; seconds == 0: no prediction
    PathCost next;  // the best of the other paths
};

// A part of a request that gets one choice.
struct UniformPart {
    Residence residence = Residence::unknown;
    std::uint64_t bytes = 0;
};

Choice choose_read(const UniformPart& part, const RequestFacts& request, const MachineFacts& machine);
Choice choose_write(const UniformPart& part, const RequestFacts& request, const MachineFacts& machine);
// Returns the page cache for a small part, and the best of the other paths, even if that one is faster.
Choice small_choice(const UniformPart& part, const RequestFacts& request, const MachineFacts& machine);
// Returns whether `one` is faster by more than the cost of finding the residency.
bool clearly_faster(const PathCost& one, const PathCost& other) noexcept;
// Returns the path that the caller named, with the profile's prediction.
Choice asked_for(const UniformPart& part, const RequestFacts& request, const MachineFacts& machine);

// Returns why `path` cannot be taken for this request. Empty: it can.
std::string refusal(PathKind path, const RequestFacts& request, const MachineFacts& machine);

bool host_memory(const RequestFacts& request);

}  // namespace penstock::policy
