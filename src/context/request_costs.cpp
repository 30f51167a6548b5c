// See request_costs.hpp.
#include "context/request_costs.hpp"

#include <algorithm>
#include <utility>

#include "os/dirty.hpp"
#include "policy/shapes.hpp"

namespace penstock::context {
namespace {

constexpr std::uint64_t kThrottledMin = 64 * kMiB;  // smaller writes do not look how full the page cache is
constexpr std::uint64_t kLessonMin = 1 * kMiB;  // smaller transfers say more of the moment than of the path

}  // namespace

bool RequestCosts::find(const std::vector<FileRange>& ranges) {
    const std::shared_ptr<const Place>& place = ranges.front().file->place;
    for (const FileRange& range : ranges) {
        if (range.file->place == place) continue;
        refusal_ = "machine profile not used: the files lie on several file systems";
        return false;
    }
    refusal_ = place->refusal;
    if (!place->costs) return false;
    place_ = place;
    return true;
}

std::string RequestCosts::profile() const { return place_ ? place_->costs->profile().name : std::string(); }

void RequestCosts::use_place(policy::RequestFacts& facts) {
    facts.costs = place_->costs.get();
    if (place_->corrections) factors_ = place_->corrections->factors();
    facts.factors = factors_;
}

// Throws Error with the cause when no path of cuFile that was measured is possible.
void RequestCosts::ask_cufile(policy::RequestFacts& facts, ContextState& context) {
    const bool native_measured = facts.costs->has(PathKind::gds);
    const auto cufile = context.cufile->get(native_measured ? PathKind::gds : PathKind::gds_compat);
    if (!native_measured) return;
    const bool native = cufile->status().native_possible;
    if (native) {
        left_out_ = {PathKind::gds_compat, "cuFile is open in native mode in this process, and has one driver"};
    } else {
        left_out_ = {PathKind::gds, "cuFile has one driver in this process, which is not native: " +
                                        cufile->status().cause};
    }
    const auto& rest = native ? place_->without_gds_compat : place_->without_gds;
    if (rest) {
        place_ = rest;
        use_place(facts);
    } else if (!native) {
        throw Error(ErrorCode::unsupported, "open cuFile", std::exchange(left_out_, {}).cause);
    }
}

void RequestCosts::tell(policy::RequestFacts& facts, ContextState& context) {
    use_place(facts);
    if (facts.direction == Direction::write && facts.total_bytes() >= kThrottledMin) {
        facts.dirty_room_bytes = os::dirty_room_bytes();
    }
    const bool measured = facts.costs->has(PathKind::gds) || facts.costs->has(PathKind::gds_compat);
    if (!measured || facts.path != PathKind::automatic || !policy::cufile_may_win(facts, context.machine())) return;
    try {
        ask_cufile(facts, context);
        facts.cufile_cause.clear();
    } catch (const Error& error) {
        facts.cufile_cause = error.info().cause;
    }
}

std::function<void(const Outcome&)> RequestCosts::lesson(const Plan& plan,
                                                         const std::shared_ptr<std::atomic<int>>& running) const {
    if (!place_ || !place_->corrections || plan.steps.size() != 1 || *running != 0) return {};
    const Step& step = plan.steps.front();
    if (step.cost_curve == 0 || step.bytes() < kLessonMin) return {};
    return [corrections = place_->corrections, curve = step.cost_curve, predicted = step.predicted_seconds,
            bytes = step.bytes(), running](const Outcome& outcome) {
        if (!outcome.ok() || outcome.bytes != bytes || *running != 1) return;
        corrections->learn(curve, predicted, outcome.seconds);
    };
}

std::vector<Explanation::Part> explained_parts(const policy::RequestFacts& facts, const policy::MachineFacts& machine,
                                               const LeftOut& left_out) {
    std::vector<Explanation::Part> parts;
    for (policy::Residence residence : {policy::Residence::registered, policy::Residence::hot,
                                        policy::Residence::cold, policy::Residence::unknown}) {
        Explanation::Part part;
        for (const policy::Segment& segment : facts.segments) {
            if (segment.residence == residence) part.bytes += segment.piece.bytes;
        }
        if (part.bytes == 0) continue;
        part.residency_known = residence != policy::Residence::unknown;
        part.in_page_cache = part.residency_known && residence != policy::Residence::cold;
        for (policy::Candidate& one : policy::candidates(facts, machine, residence, part.bytes)) {
            const bool left = one.path == left_out.path;
            part.options.push_back({one.path, one.seconds, left ? left_out.cause : std::move(one.refusal)});
        }
        std::stable_partition(part.options.begin(), part.options.end(),
                              [](const auto& option) { return option.refusal.empty(); });
        parts.push_back(std::move(part));
    }
    return parts;
}

}  // namespace penstock::context
