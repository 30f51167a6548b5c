// Reads the system's counters before and after a transfer, for its Evidence.
//
// Bounded cost: residency is sampled, on at most 16 ranges. What could not be read stays absent.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "context/cufile_slot.hpp"
#include "os/process_io.hpp"
#include "penstock/evidence.hpp"

namespace penstock::context {

struct ProbeRange {
    int fd = -1;
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
};

class EvidenceProbe {
  public:
    // `before` is used where the policy has asked already.
    EvidenceProbe(std::vector<ProbeRange> ranges, std::optional<Residency> before);
    // Counters of cuFile belong to the evidence too; call before the transfer starts.
    void watch(std::shared_ptr<CuFileSlot> cufile);
    void finish(Evidence& evidence) const;
    // Nothing where it cannot be known of every range; `why` says why not.
    static std::optional<Residency> sample(const std::vector<ProbeRange>& ranges, std::string& why);

  private:
    std::vector<ProbeRange> ranges_;
    std::optional<Residency> before_;
    std::string before_unknown_;
    std::optional<ProcessIo> io_;
    os::CpuTime cpu_;
    std::shared_ptr<CuFileSlot> cufile_;
    CuFileCounters cufile_before_;
};

}  // namespace penstock::context
