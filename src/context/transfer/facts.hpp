// gather(): the second step of a transfer. It asks files, page cache, machine profile and device for what the policy
// decides by, and changes none of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "context/transfer/check.hpp"
#include "context/transfer/request_costs.hpp"

namespace penstock::context {

struct Facts {
    policy::RequestFacts request;       // points into `costs`
    RequestCosts costs{};
    std::optional<Residency> before{};  // of all extents; absent where it was not asked or not all of it is known
    std::vector<std::string> notes{};   // for the evidence
};

Facts gather(const Submission& submission, const Checked& checked);

// The file in memory that all extents of a read into device memory are of: its mapping can be registered with the
// device. Null where there is none.
std::shared_ptr<OpenFile> file_to_register(const Submission& submission, const std::vector<Extent>& extents);

// Smaller transfers read no counters unless the caller asked for full evidence.
inline constexpr std::uint64_t kSampledEvidence = 1 * kMiB;

}  // namespace penstock::context
