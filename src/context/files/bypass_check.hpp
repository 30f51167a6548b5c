// Whether bytes that were asked for by O_DIRECT went past the page cache: looked at after the transfer, for a file
// system may take O_DIRECT and move bytes by the page cache all the same.
//
// Where the kernel promises it of the file (statx) a small transfer costs no further call. Elsewhere the page cache is
// asked before and after, and FIEMAP whether the bytes lie compressed. What did not go past it is a fallback in the
// evidence; what cannot be known stays absent. In a strict transfer that named its path both are errors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "context/files/evidence_probe.hpp"
#include "context/state.hpp"

namespace penstock::context {

struct BypassOptions {
    Direction direction = Direction::read;
    bool strict = false;
    bool has_probe = false;  // the evidence will have the residency of all extents, before and after
};

class BypassCheck {
  public:
    // Call before the transfer starts. Null when no step of the plan bypasses the page cache.
    static std::shared_ptr<BypassCheck> of(const Plan& plan, const std::vector<Extent>& extents,
                                           const BypassOptions& options);
    // Says in the outcome's shares what is known. Call after the probe has finished.
    void judge(Outcome& outcome) const;

  private:
    struct Verdict {
        std::optional<bool> past;          // of the bytes that did not fall back
        std::uint64_t fallen_bytes = 0;    // that went by the page cache
        std::string cause;                 // of that, or why it is unknown
    };
    void add(const PlanPiece& piece, const std::vector<Extent>& extents);
    std::uint64_t bytes() const;
    std::optional<std::uint64_t> encoded() const;
    std::uint64_t grown_bytes(const Residency& before, const Residency& after) const;
    Verdict verdict_of_read(const Evidence& evidence) const;
    Verdict verdict_of_write(const Evidence& evidence) const;
    void tell(const Verdict& verdict, Outcome& outcome) const;
    void refuse(const Verdict& verdict, Outcome& outcome) const;

    BypassOptions options_;
    std::vector<Extent> parts_;  // of the transfer, that steps bypass the page cache for
    bool alone_ = true;     // all steps of the plan bypass the page cache
    bool asked_ = false;    // the caller named the path
    bool promised_ = true;  // by the kernel, of all files
    std::string unknown_;   // why nothing will tell
    std::optional<Residency> before_;
};

}  // namespace penstock::context
