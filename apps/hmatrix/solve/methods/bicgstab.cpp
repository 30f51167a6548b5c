// BiCGSTAB (van der Vorst 1992) as HACApK runs it; see methods.hpp.
//
// The stopping rule tests the residual once in each full iteration, and never after the half step. Iterations and
// products can thus be compared with HACApK's. The two differ only in the order of sums.
#include "hmatrix/solve/methods/methods.hpp"

namespace penstock::hmatrix {

Task bicgstab(Column& column) {
    VectorSpace& space = column.space();
    const std::int64_t size = space.size();
    const auto memory = column.context.vectors(column.preconditioned() ? 7 : 5);
    double* const shadow = memory.get();
    double* const p = shadow + size;
    double* const ap = p + size;
    double* const t = ap + size;
    double* const at = t + size;
    double* const mp = column.preconditioned() ? at + size : p;
    double* const mt = column.preconditioned() ? mp + size : t;
    space.copy(column.r, shadow);
    space.copy(column.r, p);
    double rho = space.dot(shadow, column.r);
    for (;;) {
        if (column.preconditioned()) co_await column.apply(Operator::preconditioner, p, mp);
        if (!co_await column.multiply(mp, ap)) co_return;
        const double sigma = space.dot(shadow, ap);
        if (sigma == 0) column.stop("breakdown: the product with the direction is orthogonal to the shadow residual");
        const double alpha = rho / sigma;
        if (column.stop_unless_finite(alpha, "a step length") || !column.stopped.empty()) co_return;
        space.copy(column.r, t);
        space.add(-alpha, ap, t);

        if (column.preconditioned()) co_await column.apply(Operator::preconditioner, t, mt);
        if (!co_await column.multiply(mt, at)) co_return;
        const double below = space.dot(at, at);
        const double omega = below == 0 ? 0 : space.dot(at, t) / below;
        if (column.stop_unless_finite(omega, "a step length")) co_return;
        space.copy(t, column.r);
        space.add(-omega, at, column.r);
        const double left = column.context.norm(column.r);
        if (column.stop_unless_finite(left, "the residual")) co_return;
        space.add(alpha, mp, column.x);
        space.add(omega, mt, column.x);
        if (column.iteration_done(left)) co_return;

        const double rho_before = rho;
        rho = space.dot(shadow, column.r);
        if (omega == 0) column.stop("breakdown: the second half of the step has length 0");
        if (rho == 0) column.stop("breakdown: the residual is orthogonal to the shadow residual");
        const double beta = alpha / omega * rho / rho_before;
        if (!column.stopped.empty() || column.stop_unless_finite(beta, "a step length")) co_return;
        space.add(-omega, ap, p);
        space.scale(beta, p);
        space.add(1, column.r, p);
    }
}

}  // namespace penstock::hmatrix
