// Which path a part of a request takes: by rule, then by measurement where there is one.
#pragma once

#include <cstdint>
#include <string>

#include "policy/policy.hpp"

namespace penstock::policy {

struct Choice {
    PathKind path = PathKind::buffered;
    std::string reason;
    PathCost cost;  // predicted for `path`; seconds 0: not known
    PathCost next;  // the best of the others
};

// The part of a request that one choice is made for.
struct Part {
    Residence residence = Residence::unknown;
    std::uint64_t bytes = 0;
};

Choice choose_read(const Part& part, const RequestFacts& request, const MachineFacts& machine);
Choice choose_write(const Part& part, const RequestFacts& request, const MachineFacts& machine);
// The page cache for a small part, with the best of the other paths, whatever is faster.
Choice small_choice(const Part& part, const RequestFacts& request, const MachineFacts& machine);
// By more than the thread that would wait for it may cost.
bool clearly_faster(const PathCost& one, const PathCost& other) noexcept;
// What the profile says of a path somebody asked for.
Choice asked_for(const Part& part, const RequestFacts& request, const MachineFacts& machine);

// Why `path` cannot be taken for this request; empty: it can.
std::string refusal(PathKind path, const RequestFacts& request, const MachineFacts& machine);

bool host_memory(const RequestFacts& request);

}  // namespace penstock::policy
