// What machine profiles say of one request: found by its files, told to the policy, corrected by its outcome.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "context/files/extent.hpp"
#include "context/state.hpp"

namespace penstock::context {

class RequestCosts {
  public:
    // True: one profile is of the file system that all extents lie on. Else refusal() says why there is none.
    bool find(const std::vector<Extent>& extents);
    const std::string& refusal() const noexcept { return refusal_; }
    std::string profile() const;  // its file's name; empty without one

    // The facts point into this object: it must outlive them. cuFile, which takes most of a second to open, is asked
    // only where the profile predicts that it would be the fastest.
    void tell(policy::RequestFacts& facts, ContextState& context);

    // What to do with the outcome of a transfer by this plan: a context that learns corrects its costs by transfers
    // that ran alone, by one step. Empty: nothing is learnt. `running` counts the transfers under way.
    std::function<void(const Outcome&)> lesson(const Plan& plan,
                                               const std::shared_ptr<std::atomic<int>>& running) const;

  private:
    static void ask_cufile(policy::RequestFacts& facts, ContextState& context);

    std::shared_ptr<const Place> place_;
    std::vector<double> factors_;
    std::string refusal_;
};

// What each part of a request is chosen among, parts by residency.
std::vector<Explanation::Part> explained_parts(const policy::RequestFacts& facts,
                                               const policy::MachineFacts& machine);

}  // namespace penstock::context
