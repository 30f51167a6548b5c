// See evidence_probe.hpp.
#include "context/files/evidence_probe.hpp"

#include <algorithm>
#include <utility>

#include "context/files/open_file.hpp"
#include "os/file/residency.hpp"
#include "penstock/error.hpp"

namespace penstock::context {
namespace {
constexpr std::size_t kExtentsMax = 16;
}

std::optional<Residency> EvidenceProbe::sample(std::span<const Extent> extents, std::string& why) {
    if (extents.empty()) return std::nullopt;
    Residency sum;
    const std::size_t step = (extents.size() + kExtentsMax - 1) / kExtentsMax;
    try {
        for (std::size_t i = 0; i < extents.size(); i += step) {
            const Residency one = os::residency(extents[i].file->handle().buffered_fd, extents[i].offset_bytes,
                                                extents[i].bytes_in_file);
            os::add(sum, one);
            sum.source = sum.source.empty() || sum.source == one.source ? one.source : "mixed";
        }
    } catch (const Error& error) {
        why = error.info().cause;
        return std::nullopt;
    }
    return sum;
}

EvidenceProbe::EvidenceProbe(std::shared_ptr<const std::vector<Extent>> extents, std::optional<Residency> before)
    : extents_(std::move(extents)), before_(std::move(before)), io_(os::process_io()), cpu_(os::cpu_time()) {
    if (!before_) before_ = sample(*extents_, before_unknown_);
}

void EvidenceProbe::watch(std::shared_ptr<CuFileSlot> cufile) {
    cufile_ = std::move(cufile);
    if (const auto now = cufile_->counters()) cufile_before_ = *now;
}

void EvidenceProbe::finish(Evidence& evidence) const {
    const os::CpuTime cpu = os::difference(os::cpu_time(), cpu_);
    evidence.cpu_user_s = cpu.user_s;
    evidence.cpu_system_s = cpu.system_s;
    if (const auto now = os::process_io(); now && io_) evidence.process_io = os::difference(*now, *io_);
    evidence.before = before_;
    std::string unknown = before_unknown_;
    evidence.after = sample(*extents_, unknown);
    if (!unknown.empty()) evidence.notes.push_back("residency unknown: " + unknown);
    if (!cufile_) return;
    evidence.cufile = cufile_->counters();
    if (!evidence.cufile) return;
    CuFileCounters& now = *evidence.cufile;
    now.nvfs_reads -= cufile_before_.nvfs_reads;
    now.nvfs_writes -= cufile_before_.nvfs_writes;
    now.p2p_reads -= cufile_before_.p2p_reads;
    now.p2p_writes -= cufile_before_.p2p_writes;
    now.posix_reads -= cufile_before_.posix_reads;
    now.posix_writes -= cufile_before_.posix_writes;
}

}  // namespace penstock::context
