// GCR(m), truncated; see methods.hpp.
//
// The code builds a new direction in its own memory and makes it orthogonal to all stored images. Only then does it
// replace the oldest direction, so that no direction is lost before its last use.
#include <algorithm>
#include <cmath>
#include <vector>

#include "hmatrix/solve/methods/basis.hpp"
#include "hmatrix/solve/methods/methods.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kDirections = 8;
constexpr double kNoProgress = 1e-15;  // relative to the residual: a smaller step changes nothing

}  // namespace

Task gcr(Column& column) {
    VectorSpace& space = column.space();
    const std::int64_t m = column.options().restart == 0 ? kDirections : column.options().restart;
    Basis directions(space, m);
    Basis images(space, m);  // orthonormal
    const auto memory = column.context.vectors(2);
    double* const p = memory.get();
    double* const q = p + space.size();
    std::vector<double> along;
    double left = column.context.norm(column.r);
    for (std::int64_t made = 0;; ++made) {
        if (column.preconditioned()) {
            co_await column.apply(Operator::preconditioner, column.r, p);
        } else {
            space.copy(column.r, p);
        }
        if (!co_await column.multiply(p, q)) co_return;
        along.assign(static_cast<std::size_t>(std::min(made, m)), 0.0);
        const double length = images.orthogonalise(q, along);
        if (length == 0) column.stop("breakdown: the new direction lies among those already used");
        if (column.stop_unless_finite(length, "a product") || !column.stopped.empty()) co_return;
        for (double& factor : along) factor = -factor;
        directions.combine(along, p);
        space.scale(1 / length, p);
        space.scale(1 / length, q);

        const double step = space.dot(q, column.r);
        if (column.stop_unless_finite(step, "a step length")) co_return;
        if (std::abs(step) <= kNoProgress * left) {
            column.stop("breakdown: no step along the new direction makes the residual smaller");
            co_return;
        }
        space.add(-step, q, column.r);
        left = column.context.norm(column.r);
        if (column.stop_unless_finite(left, "the residual")) co_return;
        space.add(step, p, column.x);
        if (column.iteration_done(left)) co_return;
        space.copy(p, directions.column(made % m));
        space.copy(q, images.column(made % m));
    }
}

}  // namespace penstock::hmatrix
