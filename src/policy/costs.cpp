// See costs.hpp.
#include "policy/costs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock::policy {
namespace {

// Among several measured shapes of a path, the one with the luckiest measurement would win. So a shape other than the
// policy's must be this much faster, as a logarithm to base 2 (8 %).
constexpr double kShaped = 0.11;
constexpr double kFar = 4;  // a curve that ends before others still answers for sizes up to 2^4 times its last one

// Returns how much a curve differs from the question. Alignment counts more than first touch.
int mismatch(bool aligned, FirstTouch touch, const CostQuestion& question) {
    const bool other_touch = question.first_touch != FirstTouch::none && touch != question.first_touch;
    return (aligned != question.aligned ? 2 : 0) + (other_touch ? 1 : 0);
}

}  // namespace

std::size_t Costs::group_of(Direction direction, bool cached, MemoryKind memory) noexcept {
    return (direction == Direction::write ? 8u : 0u) + (cached ? 4u : 0u) + static_cast<std::size_t>(memory);
}

Costs::Costs(Profile profile) : profile_(std::move(profile)) {
    for (const ProfileRow& row : profile_.rows) add(row);
    for (Group& group : groups_) {
        for (Curve& curve : group.curves) {
            std::sort(curve.points.begin(), curve.points.end(),
                      [](const Point& a, const Point& b) { return a.log_bytes < b.log_bytes; });
            group.log_reach = std::max(group.log_reach, curve.points.back().log_bytes);
        }
    }
}

void Costs::add(const ProfileRow& row) {
    std::vector<Curve>& group = groups_[group_of(row.direction, row.cached, row.memory)].curves;
    paths_[static_cast<std::size_t>(row.path)] = true;
    const auto same = [&](const Curve& curve) {
        return curve.way.path == row.path && curve.way.workers == row.workers && curve.way.depth == row.depth &&
               curve.way.chunk_bytes == row.chunk_bytes && curve.first_touch == row.first_touch &&
               curve.aligned == row.aligned;
    };
    auto found = std::find_if(group.begin(), group.end(), same);
    if (found == group.end()) {
        group.push_back({{row.path, row.workers, row.depth, row.chunk_bytes, 0, ++curve_count_, row.samples},
                         row.first_touch, row.aligned, true, {}});
        found = group.end() - 1;
    }
    found->synced &= row.synced_seconds > 0;
    const double synced = row.synced_seconds > 0 ? row.synced_seconds : row.seconds;
    found->points.push_back(
        {std::log2(static_cast<double>(row.bytes)), std::log2(row.seconds), std::log2(synced), row.samples});
}

double Costs::log_seconds(const Curve& curve, double x, bool synced) noexcept {
    const auto y = [&](const Point& point) { return synced ? point.log_synced : point.log_seconds; };
    const std::vector<Point>& points = curve.points;
    if (x <= points.front().log_bytes) return y(points.front());
    if (x >= points.back().log_bytes) return y(points.back()) + (x - points.back().log_bytes);
    const auto above = std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.log_bytes > x; });
    const auto below = above - 1;
    const double part = (x - below->log_bytes) / (above->log_bytes - below->log_bytes);
    return y(*below) + part * (y(*above) - y(*below));
}

// Returns the smaller number of measurements of the two sizes around `x`.
std::uint32_t Costs::samples(const Curve& curve, double x) noexcept {
    const std::vector<Point>& points = curve.points;
    const auto above = std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.log_bytes >= x; });
    if (above == points.end()) return points.back().samples;
    if (above == points.begin() || above->log_bytes == x) return above->samples;
    return std::min((above - 1)->samples, above->samples);
}

bool Costs::answers(const Curve& curve, const Group& group, double x, bool synced) noexcept {
    if (synced && !curve.synced) return false;
    const double last = curve.points.back().log_bytes;
    return last >= group.log_reach || x <= last + kFar;
}

PathCosts Costs::predict(const CostQuestion& question, std::span<const double> factors) const {
    PathCosts costs;
    if (factors.empty() && answers_->look(question, costs)) return costs;
    costs = interpolate(question, factors);
    if (factors.empty()) answers_->keep(question, costs);
    return costs;
}

PathCosts Costs::interpolate(const CostQuestion& question, std::span<const double> factors) const {
    PathCosts costs;
    std::array<int, kCostedPaths> likeness{};
    if (question.bytes == 0) return costs;
    const Group& group = groups_[group_of(question.direction, question.cached, question.memory)];
    const double log_bytes = std::log2(static_cast<double>(question.bytes));
    for (const Curve& curve : group.curves) {
        if (!answers(curve, group, log_bytes, question.synced)) continue;
        const int unlike = mismatch(curve.aligned, curve.first_touch, question);
        const bool shaped = curve.way.workers != 0 || curve.way.depth != 0 || curve.way.chunk_bytes != 0;
        const double measured = log_seconds(curve, log_bytes, question.synced);
        double seconds = measured + (shaped ? kShaped : 0);  // a logarithm until the end of the loop
        if (curve.way.curve <= factors.size()) seconds += std::log2(factors[curve.way.curve - 1]);
        std::size_t at = 0;
        while (at < costs.count && costs.found[at].path != curve.way.path) ++at;
        const bool first = at == costs.count;
        const bool better = first || unlike < likeness[at] ||
                            (unlike == likeness[at] && seconds < costs.found[at].seconds);
        if (!better) continue;
        if (first) ++costs.count;
        costs.found[at] = curve.way;
        costs.found[at].seconds = seconds;
        costs.found[at].samples = samples(curve, log_bytes);
        likeness[at] = unlike;
    }
    for (std::size_t i = 0; i < costs.count; ++i) costs.found[i].seconds = std::exp2(costs.found[i].seconds);
    std::sort(costs.found.begin(), costs.found.begin() + static_cast<std::ptrdiff_t>(costs.count),
              [](const PathCost& a, const PathCost& b) { return a.seconds < b.seconds; });
    return costs;
}

}  // namespace penstock::policy
