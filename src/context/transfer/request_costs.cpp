// See request_costs.hpp.
#include "context/transfer/request_costs.hpp"

#include <utility>

#include "policy/shapes.hpp"

namespace penstock::context {
namespace {

constexpr std::uint64_t kLessonMin = 1 * kMiB;  // smaller transfers say more of the moment than of the path

}  // namespace

bool RequestCosts::find(const std::vector<Extent>& extents) {
    const std::shared_ptr<const Place>& place = extents.front().file->place;
    for (const Extent& extent : extents) {
        if (extent.file->place == place) continue;
        refusal_ = "machine profile not used: the files lie on several file systems";
        return false;
    }
    refusal_ = place->refusal;
    if (!place->costs) return false;
    place_ = place;
    return true;
}

std::string RequestCosts::profile() const { return place_ ? place_->costs->profile().name : std::string(); }

// One driver serves all of a process: natively, or with its compatibility mode.
void RequestCosts::ask_cufile(policy::RequestFacts& facts, ContextState& context) {
    const bool native_measured = facts.costs->has(PathKind::gds);
    try {
        const auto cufile = context.cufile->get(native_measured ? PathKind::gds : PathKind::gds_compat);
        if (!native_measured) {
            facts.gds_compat_cause.clear();
        } else if (cufile->status().native_possible) {
            facts.gds_cause.clear();
            facts.gds_compat_cause = "cuFile is open in native mode in this process, and has one driver";
        } else {
            facts.gds_cause = "cuFile has one driver in this process, which is not native: " + cufile->status().cause;
            facts.gds_compat_cause.clear();
        }
    } catch (const Error& error) {
        facts.gds_cause = facts.gds_compat_cause = error.info().cause;
    }
}

void RequestCosts::tell(policy::RequestFacts& facts, ContextState& context) {
    facts.costs = place_->costs.get();
    if (place_->corrections) factors_ = place_->corrections->factors();
    facts.factors = factors_;
    const bool measured = facts.costs->has(PathKind::gds) || facts.costs->has(PathKind::gds_compat);
    if (!measured || facts.path != PathKind::automatic || !policy::cufile_may_win(facts, context.machine())) return;
    ask_cufile(facts, context);
}

std::function<void(const Outcome&)> RequestCosts::lesson(const Plan& plan,
                                                         const std::shared_ptr<std::atomic<int>>& running) const {
    if (!place_ || !place_->corrections || plan.steps.size() != 1 || *running != 0) return {};
    const Step& step = plan.steps.front();
    if (step.cost_curve == 0 || step.bytes() < kLessonMin) return {};
    return [corrections = place_->corrections, curve = step.cost_curve, predicted = step.predicted_seconds,
            bytes = step.bytes(), running](const Outcome& outcome) {
        const bool as_planned = outcome.ok() && outcome.bytes == bytes && outcome.evidence.fallbacks.empty();
        if (!as_planned || *running != 1) return;
        corrections->learn(curve, predicted, outcome.seconds);
    };
}

std::vector<Explanation::Part> explained_parts(const policy::RequestFacts& facts,
                                               const policy::MachineFacts& machine) {
    std::vector<Explanation::Part> parts;
    for (policy::Residence residence : {policy::Residence::registered, policy::Residence::hot,
                                        policy::Residence::cold, policy::Residence::hidden,
                                        policy::Residence::unknown}) {
        Explanation::Part part;
        for (const policy::Segment& segment : facts.segments) {
            if (segment.residence == residence) part.bytes += segment.piece.bytes;
        }
        if (part.bytes == 0) continue;
        part.residency_known = residence != policy::Residence::unknown && residence != policy::Residence::hidden;
        part.in_page_cache = part.residency_known && residence != policy::Residence::cold;
        for (policy::Candidate& one : policy::candidates(facts, machine, residence, part.bytes)) {
            part.options.push_back({one.path, one.seconds, std::move(one.refusal)});
        }
        parts.push_back(std::move(part));
    }
    return parts;
}

}  // namespace penstock::context
