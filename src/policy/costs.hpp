// What a machine profile says of a request: predicted seconds of every path that was measured for such requests.
//
// Between two measured sizes times are interpolated on logarithmic axes, where they are nearly straight; below the
// smallest they stay (latency), above the largest the rate stays. Pure and cheap: a handful of curves a question.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "penstock/profile.hpp"
#include "policy/answers.hpp"
#include "policy/cost_types.hpp"

namespace penstock::policy {

class Costs {
  public:
    explicit Costs(Profile profile);

    const Profile& profile() const noexcept { return profile_; }
    std::size_t curves() const noexcept { return curve_count_; }
    bool has(PathKind path) const noexcept { return paths_[static_cast<std::size_t>(path)]; }

    // Of each measured path one way, fastest first. Rows of the same alignment and first touch answer if there are any,
    // else the others. `factors` corrects curves by what was observed, as [curve - 1]; empty: no corrections.
    PathCosts predict(const CostQuestion& question, std::span<const double> factors = {}) const;

  private:
    PathCosts interpolate(const CostQuestion& question, std::span<const double> factors) const;
    struct Point {
        double log_bytes, log_seconds, log_synced;
        std::uint32_t samples;
    };
    struct Curve {
        PathCost way;
        FirstTouch first_touch;
        bool aligned;
        bool synced;  // every point has a time to stable storage
        std::vector<Point> points;  // by size
    };
    struct Group {
        std::vector<Curve> curves;
        double log_reach = 0;  // the largest size any curve has
    };
    static std::size_t group_of(Direction direction, bool cached, MemoryKind memory) noexcept;
    static double log_seconds(const Curve& curve, double log_bytes, bool synced) noexcept;
    static std::uint32_t samples(const Curve& curve, double log_bytes) noexcept;
    static bool answers(const Curve& curve, const Group& group, double log_bytes, bool synced) noexcept;
    void add(const ProfileRow& row);

    std::unique_ptr<Answers> answers_ = std::make_unique<Answers>();  // without corrections
    Profile profile_;
    std::array<Group, 16> groups_;
    std::array<bool, kPathKinds> paths_{};
    std::uint32_t curve_count_ = 0;
};

}  // namespace penstock::policy
