// Small dense problems for tests of solvers: matrices with chosen spectra, an operator that counts its sweeps and can
// use up its permitted error, and a residual that is computed independently.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

inline std::vector<double> random_numbers(std::int64_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<double> made(static_cast<std::size_t>(count));
    for (double& value : made) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    return made;
}

inline double norm_of(std::span<const double> x) {
    long double sum = 0;
    for (const double value : x) sum += static_cast<long double>(value) * value;
    return static_cast<double>(std::sqrt(sum));
}

// A square matrix, column-major.
struct Dense {
    std::int64_t size = 0;
    std::vector<double> values;

    explicit Dense(std::int64_t n) : size(n), values(static_cast<std::size_t>(n * n)) {}
    double& at(std::int64_t row, std::int64_t column) {
        return values[static_cast<std::size_t>(row + column * size)];
    }
    double at(std::int64_t row, std::int64_t column) const {
        return values[static_cast<std::size_t>(row + column * size)];
    }
    std::vector<double> times(std::span<const double> x) const {
        std::vector<double> y(static_cast<std::size_t>(size));
        for (std::int64_t j = 0; j < size; ++j) {
            for (std::int64_t i = 0; i < size; ++i) y[i] += at(i, j) * x[j];
        }
        return y;
    }
};

// Eigenvalues are near 1, so every method converges fast.
inline Dense well_conditioned(std::int64_t n, std::uint64_t seed, bool symmetric = false) {
    Dense made(n);
    made.values = random_numbers(n * n, seed);
    for (double& value : made.values) value *= 0.5 / std::sqrt(static_cast<double>(n));
    if (symmetric) {
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t i = 0; i < j; ++i) made.at(i, j) = made.at(j, i);
        }
    }
    for (std::int64_t i = 0; i < n; ++i) made.at(i, i) += 1;
    return made;
}

// Q D P' with singular values from 1 down to 1 / condition in equal ratios. For a symmetric positive definite matrix P
// is Q.
inline Dense conditioned(std::int64_t n, double condition, std::uint64_t seed, bool symmetric = false) {
    const auto orthogonal = [n](std::uint64_t from) {
        Dense q(n);
        q.values = random_numbers(n * n, from);
        for (int pass = 0; pass < 2; ++pass) {
            for (std::int64_t j = 0; j < n; ++j) {
                const std::span<double> column(&q.at(0, j), static_cast<std::size_t>(n));
                for (std::int64_t k = 0; k < j; ++k) {
                    double along = 0;
                    for (std::int64_t i = 0; i < n; ++i) along += q.at(i, k) * q.at(i, j);
                    for (std::int64_t i = 0; i < n; ++i) q.at(i, j) -= along * q.at(i, k);
                }
                const double length = norm_of(column);
                for (double& value : column) value /= length;
            }
        }
        return q;
    };
    const Dense q = orthogonal(seed), p = symmetric ? q : orthogonal(seed + 1);
    Dense made(n);
    for (std::int64_t k = 0; k < n; ++k) {
        const double value = std::pow(condition, -static_cast<double>(k) / static_cast<double>(n - 1));
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t i = 0; i < n; ++i) made.at(i, j) += value * q.at(i, k) * p.at(j, k);
        }
    }
    return made;
}

// The kernel 1 / |x - y| between points spread over a unit sphere, each with an equal share of its area.
inline Dense single_layer(std::int64_t n) {
    const double turn = std::acos(-1.0) * (3 - std::sqrt(5.0));
    const auto point = [&](std::int64_t i, double* p) {
        p[2] = 1 - (2 * static_cast<double>(i) + 1) / static_cast<double>(n);
        const double radius = std::sqrt(1 - p[2] * p[2]);
        p[0] = radius * std::cos(turn * static_cast<double>(i));
        p[1] = radius * std::sin(turn * static_cast<double>(i));
    };
    Dense made(n);
    const double share = 1 / static_cast<double>(n);
    for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < n; ++i) {
            double p[3], q[3];
            point(i, p);
            point(j, q);
            made.at(i, j) = i == j ? std::sqrt(share) : share / std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
        }
    }
    return made;
}

// A matrix as an operator. Each apply() counts as one sweep, whatever its number of columns.
class DenseOperator final : public LinearOperator {
  public:
    explicit DenseOperator(const Dense& matrix) : matrix_(matrix), norm_(norm_of(matrix.values)) {}

    void apply(const double* x, double* y, std::int64_t count, double accuracy) override {
        accuracies.push_back(accuracy);
        for (std::int64_t c = 0; c < count; ++c) {
            const std::span<const double> from(x + c * matrix_.size, static_cast<std::size_t>(matrix_.size));
            std::vector<double> image = matrix_.times(from);
            if (wrong_by > 0) disturb(image, wrong_by * accuracy * norm_ * norm_of(from));
            std::copy(image.begin(), image.end(), y + c * matrix_.size);
        }
        columns += count;
        if (after_apply) after_apply(static_cast<std::int64_t>(accuracies.size()), y);
    }
    std::int64_t applies() const { return static_cast<std::int64_t>(accuracies.size()); }

    double wrong_by = 0;  // error of every product as a part of the permitted accuracy, in a new direction each time
    std::vector<double> accuracies;
    std::int64_t columns = 0;
    std::function<void(std::int64_t applies, double* y)> after_apply;

  private:
    void disturb(std::vector<double>& image, double size) {
        const std::vector<double> noise = random_numbers(matrix_.size, 77 + accuracies.size());
        const double length = norm_of(noise);
        for (std::size_t i = 0; i < image.size(); ++i) image[i] += size / length * noise[i];
    }

    const Dense& matrix_;
    double norm_;
};

inline double relative_residual(const Dense& matrix, std::span<const double> b, std::span<const double> x) {
    std::vector<double> left = matrix.times(x);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = b[i] - left[i];
    return norm_of(left) / norm_of(b);
}

}  // namespace penstock::hmatrix
