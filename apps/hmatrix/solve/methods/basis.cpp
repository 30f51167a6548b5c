// See basis.hpp.
#include "hmatrix/solve/methods/basis.hpp"

#include <algorithm>
#include <cmath>

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kBlock = 16;
// If more than this part of the norm remains after a pass, the vector is orthogonal to working precision.
constexpr double kEnough = 0.70710678118654752;
constexpr int kPasses = 3;
// A smaller remainder, relative to the vector, is rounding: the vector lies in the basis.
constexpr double kRounding = 1e-14;

}  // namespace

Basis::Basis(VectorSpace& space, std::int64_t limit)
    : space_(space), block_(std::clamp<std::int64_t>(limit, 1, kBlock)) {}

double* Basis::column(std::int64_t index) {
    while (static_cast<std::int64_t>(blocks_.size()) * block_ <= index) blocks_.push_back(space_.allocate(block_));
    return blocks_[static_cast<std::size_t>(index / block_)].get() + index % block_ * space_.size();
}

void Basis::dots(const double* x, std::span<double> result) const {
    const auto block = static_cast<std::size_t>(block_);
    for (std::size_t at = 0; at < result.size(); at += block) {
        space_.dots(blocks_[at / block].get(), x, result.subspan(at, std::min(block, result.size() - at)));
    }
}

void Basis::combine(std::span<const double> factors, double* y) const {
    const auto block = static_cast<std::size_t>(block_);
    for (std::size_t at = 0; at < factors.size(); at += block) {
        space_.combine(blocks_[at / block].get(), factors.subspan(at, std::min(block, factors.size() - at)), y);
    }
}

double Basis::orthogonalise(double* x, std::span<double> coefficients) const {
    const auto norm = [&] { return std::sqrt(space_.dot(x, x)); };
    const double whole = norm();
    double before = whole;
    if (coefficients.empty() || !std::isfinite(whole)) return whole;
    std::vector<double> part(coefficients.size());
    for (int pass = 0; pass < kPasses; ++pass) {
        dots(x, part);
        for (std::size_t i = 0; i < part.size(); ++i) {
            coefficients[i] += part[i];
            part[i] = -part[i];
        }
        combine(part, x);
        const double after = norm();
        if (!(after > kRounding * whole)) return std::isfinite(after) ? 0 : after;
        if (after > kEnough * before) return after;
        before = after;
    }
    return before;
}

}  // namespace penstock::hmatrix
