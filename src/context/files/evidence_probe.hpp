// Reads the system's counters before and after a transfer, for its Evidence.
//
// Bounded cost: residency is sampled, on at most 16 extents. What could not be read stays absent.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "context/cufile_slot.hpp"
#include "context/files/extent.hpp"
#include "os/process_io.hpp"
#include "penstock/evidence.hpp"

namespace penstock::context {

class EvidenceProbe {
  public:
    // `before`: what the policy's facts have of the same extents; absent, it is asked now.
    EvidenceProbe(std::shared_ptr<const std::vector<Extent>> extents, std::optional<Residency> before);
    // Counters of cuFile belong to the evidence too; call before the transfer starts.
    void watch(std::shared_ptr<CuFileSlot> cufile);
    void finish(Evidence& evidence) const;
    // Nothing where it cannot be known of every extent; `why` says why not.
    static std::optional<Residency> sample(std::span<const Extent> extents, std::string& why);

  private:
    std::shared_ptr<const std::vector<Extent>> extents_;
    std::optional<Residency> before_;
    std::string before_unknown_;
    std::optional<ProcessIo> io_;
    os::CpuTime cpu_;
    std::shared_ptr<CuFileSlot> cufile_;
    CuFileCounters cufile_before_;
};

}  // namespace penstock::context
