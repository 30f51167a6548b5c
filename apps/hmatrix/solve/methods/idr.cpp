// IDR(s), the biorthogonal variant; see methods.hpp.
//
// G holds the images of the directions U: g = A u. The shadow vector p_i stays orthogonal to g_k for i < k, which makes
// the small matrix M = P' G lower triangular. After s steps in one space, a step with omega moves the residual into the
// next, smaller space.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "hmatrix/solve/methods/basis.hpp"
#include "hmatrix/solve/methods/methods.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::uint64_t kSeed = 20110838;  // an arbitrary fixed seed
// If the cosine of the angle between r and A r is below this, omega is lengthened (Sleijpen and van der Vorst).
constexpr double kAngle = 0.7;

// The state of one right-hand side. M is stored by columns, and f = P' r.
struct Idr {
    explicit Idr(Column& owner)
        : column(owner), space(owner.space()), s(owner.context.shadow_size), n(space.size()),
          memory(owner.context.vectors(2 * s + 3)), small(static_cast<std::size_t>(s * s)),
          f(static_cast<std::size_t>(s)), c(f.size()), found(f.size()) {
        for (std::int64_t i = 0; i < s; ++i) m(i, i) = 1;
    }
    double& m(std::int64_t row, std::int64_t col) { return small[static_cast<std::size_t>(row + col * s)]; }
    double* g(std::int64_t k) const { return memory.get() + k * n; }
    double* u(std::int64_t k) const { return memory.get() + (s + k) * n; }
    double* v() const { return memory.get() + 2 * s * n; }
    double* mv() const { return column.preconditioned() ? v() + n : v(); }
    double* au() const { return v() + 2 * n; }
    void shadows(const double* x, std::span<double> result) const {
        space.dots(column.context.shadow.get(), x, result);
    }

    bool new_direction(std::int64_t k);
    void combine_direction(std::int64_t k);
    bool make_orthogonal(std::int64_t k);
    bool step(std::int64_t k);
    bool reduce();

    Column& column;
    VectorSpace& space;
    std::int64_t s;
    std::int64_t n;
    std::shared_ptr<double> memory;
    std::vector<double> small;
    std::vector<double> f;
    std::vector<double> c;
    std::vector<double> found;
    double omega = 1;
};

// v = r - sum over i >= k of c_i g_i, where M(k.., k..) c = f(k..): the residual without its components along the
// shadow vectors. Returns false if the method must end.
bool Idr::new_direction(std::int64_t k) {
    for (std::int64_t i = k; i < s; ++i) {
        double value = f[i];
        for (std::int64_t j = k; j < i; ++j) value -= m(i, j) * c[j];
        c[i] = value / m(i, i);
        if (column.stop_unless_finite(c[i], "a coefficient")) return false;
    }
    space.copy(column.r, v());
    std::vector<double> factors(c.begin() + k, c.end());
    for (double& factor : factors) factor = -factor;
    space.combine(g(k), factors, v());
    return true;
}

// u_k = omega M v + sum over i >= k of c_i u_i. The sum contains u_k itself, so it is built in another vector.
void Idr::combine_direction(std::int64_t k) {
    space.copy(mv(), au());
    space.scale(omega, au());
    space.combine(u(k), std::span(c).subspan(static_cast<std::size_t>(k)), au());
    space.copy(au(), u(k));
}

// Makes g_k = A u_k orthogonal to the first k shadow vectors, changes u_k accordingly, and fills column k of M. Returns
// false if the method must end.
bool Idr::make_orthogonal(std::int64_t k) {
    shadows(g(k), found);
    std::vector<double> alpha(static_cast<std::size_t>(k));
    for (std::int64_t i = 0; i < k; ++i) {
        double value = found[i];
        for (std::int64_t j = 0; j < i; ++j) value += m(i, j) * alpha[j];
        alpha[i] = -value / m(i, i);
    }
    if (k > 0) {
        space.combine(g(0), alpha, g(k));
        space.combine(u(0), alpha, u(k));
        shadows(g(k), found);
    }
    for (std::int64_t i = k; i < s; ++i) {
        if (column.stop_unless_finite(found[i], "a product")) return false;
        m(i, k) = found[i];
    }
    if (m(k, k) == 0) column.stop("breakdown: a direction's image is orthogonal to the shadow space");
    return column.stopped.empty();
}

// Steps along u_k so that the residual becomes orthogonal to shadow vector k. Returns true if the method continues.
bool Idr::step(std::int64_t k) {
    const double beta = f[k] / m(k, k);
    if (column.stop_unless_finite(beta, "a step length")) return false;
    space.add(-beta, g(k), column.r);
    const double left = column.context.norm(column.r);
    if (column.stop_unless_finite(left, "the residual")) return false;
    space.add(beta, u(k), column.x);
    for (std::int64_t i = k + 1; i < s; ++i) f[i] -= beta * m(i, k);
    return !column.iteration_done(left);
}

// r -= omega t, where v() is r, mv() is its preconditioned copy, and au() is t = A mv(). Returns true if the method
// continues.
bool Idr::reduce() {
    const double tt = space.dot(au(), au()), tr = space.dot(au(), column.r);
    const double before = column.context.norm(column.r);
    const double cosine = std::abs(tr) / (std::sqrt(tt) * before);
    omega = tr / tt;
    if (column.stop_unless_finite(omega, "a step length")) return false;
    if (omega == 0) column.stop("breakdown: the residual is orthogonal to its image");
    if (omega == 0) return false;
    if (cosine < kAngle) omega *= kAngle / cosine;
    space.add(-omega, au(), column.r);
    const double left = column.context.norm(column.r);
    if (column.stop_unless_finite(left, "the residual")) return false;
    space.add(omega, mv(), column.x);
    return !column.iteration_done(left);
}

}  // namespace

std::shared_ptr<double> idr_shadow(VectorSpace& space, std::int64_t s) {
    std::mt19937_64 random(kSeed);
    std::vector<double> host(static_cast<std::size_t>(space.size()));
    Basis basis(space, s);
    const std::shared_ptr<double> shadow = space.allocate(s);
    for (std::int64_t k = 0; k < s; ++k) {
        double* const column = basis.column(k);
        double length = 0;
        while (length == 0) {
            for (double& value : host) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
            space.upload(host, column);
            std::vector<double> along(static_cast<std::size_t>(k));
            length = basis.orthogonalise(column, along);
        }
        space.scale(1 / length, column);
        space.copy(column, shadow.get() + k * space.size());
    }
    return shadow;
}

Task idr(Column& column) {
    Idr state(column);
    for (;;) {
        state.shadows(column.r, state.f);
        for (std::int64_t k = 0; k < state.s; ++k) {
            if (!state.new_direction(k)) co_return;
            if (column.preconditioned()) co_await column.apply(Operator::preconditioner, state.v(), state.mv());
            state.combine_direction(k);
            if (!co_await column.multiply(state.u(k), state.g(k))) co_return;
            if (!state.make_orthogonal(k) || !state.step(k)) co_return;
        }
        state.space.copy(column.r, state.v());
        if (column.preconditioned()) co_await column.apply(Operator::preconditioner, state.v(), state.mv());
        if (!co_await column.multiply(state.mv(), state.au())) co_return;
        if (!state.reduce()) co_return;
    }
}

}  // namespace penstock::hmatrix
