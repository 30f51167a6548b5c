// From what a call asked for to a transfer that is ready to start, as a chain of values:
//
//   1. check(submission, extents)    -> Checked   what makes no sense is refused (check.hpp)
//   2. gather(submission, checked)   -> Facts     what the policy decides by (facts.hpp)
//   3. policy::make_plan(facts)      -> Plan      pure
//   4. launch(submission, preview)   -> transfer  memory, files and evidence are held and watched (launch.hpp)
//
// A Preview is what the first three steps found. They change nothing, so a caller who only asks gets the same plan as
// one whose bytes are moved.
#pragma once

#include <memory>
#include <vector>

#include "context/transfer/check.hpp"
#include "context/transfer/facts.hpp"

namespace penstock::context {

struct Preview {
    Checked checked;
    Facts facts;
    Plan plan;
};
Preview preview(const Submission& submission, std::vector<Extent> extents);

// What Context::explain tells of a preview.
Explanation explain(const Submission& submission, std::vector<Extent> extents);

// Registers mappings where the transfer needs that, and announces the transfer to its files.
std::shared_ptr<StartedTransfer> prepare(const Submission& submission, std::vector<Extent> extents);

}  // namespace penstock::context
