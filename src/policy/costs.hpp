// What a machine profile says of a request: predicted seconds of every path that was measured for such requests.
//
// Between two measured sizes the times are interpolated on logarithmic axes, where they are nearly straight. Below the
// smallest size the time stays constant (latency). Above the largest size the rate stays constant. Pure and cheap: a
// question looks at a few curves.
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

    // Returns one way for each measured path, fastest first. Rows with the same alignment and first touch answer if
    // there are any, and otherwise the others do. `factors` corrects curves by observed times, as [curve - 1]. Empty:
    // no corrections.
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
        bool synced;  // every point has a time until stable storage
        std::vector<Point> points;  // ordered by size
    };
    struct Group {
        std::vector<Curve> curves;
        double log_reach = 0;  // the largest size of all curves
    };
    static std::size_t group_of(Direction direction, bool cached, MemoryKind memory) noexcept;
    static double log_seconds(const Curve& curve, double log_bytes, bool synced) noexcept;
    static std::uint32_t samples(const Curve& curve, double log_bytes) noexcept;
    static bool answers(const Curve& curve, const Group& group, double log_bytes, bool synced) noexcept;
    void add(const ProfileRow& row);

    std::unique_ptr<Answers> answers_ = std::make_unique<Answers>();  // predictions without corrections
    Profile profile_;
    std::array<Group, 16> groups_;
    std::array<bool, kPathKinds> paths_{};
    std::uint32_t curve_count_ = 0;
};

}  // namespace penstock::policy
