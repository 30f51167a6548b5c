// A small problem with known entries, for tests of assembly and of everything built on it.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "context/seams.hpp"
#include "hmatrix/assemble/assemble.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// Points on a bent sheet. Entries fall smoothly with distance and are largest on the diagonal.
class SmallProblem final : public Entries {
  public:
    explicit SmallProblem(std::int64_t unknowns, double unit = 1) : unit_(unit), points_(unknowns) {
        std::mt19937_64 random(11);
        const auto number = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
        for (Point& point : points_) {
            point = {4 * number(), number(), 0};
            point.z = std::sin(point.x);
        }
    }
    double entry(std::int64_t i, std::int64_t j) const {
        const Point &a = points_[i], &b = points_[j];
        const double distance = std::hypot(a.x - b.x, a.y - b.y, a.z - b.z);
        return unit_ * (i == j ? 30 : (1 + 0.1 * b.y) / (0.05 + distance));
    }
    void row(std::int64_t row, std::span<const std::int64_t> columns, double* out) const override {
        for (std::size_t i = 0; i < columns.size(); ++i) out[i] = entry(row, columns[i]);
    }
    void column(std::span<const std::int64_t> rows, std::int64_t column, double* out) const override {
        for (std::size_t i = 0; i < rows.size(); ++i) out[i] = entry(rows[i], column);
    }

    MatrixProblem problem() const { return {points_, this}; }
    std::int64_t unknowns() const { return static_cast<std::int64_t>(points_.size()); }
    std::vector<double> times(std::span<const double> x) const {
        std::vector<double> y(points_.size());
        for (std::int64_t i = 0; i < unknowns(); ++i) {
            for (std::int64_t j = 0; j < unknowns(); ++j) y[i] += entry(i, j) * x[j];
        }
        return y;
    }

  private:
    double unit_;
    std::vector<Point> points_;
};

inline Context host_context(ContextOptions options = {}, context::Seams seams = {}) {
    options.device = "host";
    return context::make_context(options, std::move(seams));
}

inline std::vector<double> random_vector(std::int64_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<double> made(count);
    for (double& value : made) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    return made;
}

// The relative error ||a - b|| / ||b||.
inline double difference(std::span<const double> a, std::span<const double> b) {
    double wrong = 0, all = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        wrong += (a[i] - b[i]) * (a[i] - b[i]);
        all += b[i] * b[i];
    }
    return std::sqrt(wrong / all);
}

}  // namespace penstock::hmatrix
