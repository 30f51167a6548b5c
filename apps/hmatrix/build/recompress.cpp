// QR of both factors, and SVD of the product of their triangles.
#include "hmatrix/build/recompress.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

namespace penstock::hmatrix {
namespace {

double dot(const double* __restrict x, const double* __restrict y, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += x[i] * y[i];
    return sum;
}

void add(double factor, const double* __restrict x, double* __restrict y, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

struct CosineSine {
    double c, s;
};

void rotate(const CosineSine& by, double* __restrict x, double* __restrict y, std::int64_t count) {
    const double c = by.c, s = by.s;
    for (std::int64_t i = 0; i < count; ++i) {
        const double first = c * x[i] - s * y[i];
        y[i] = s * x[i] + c * y[i];
        x[i] = first;
    }
}

// Overwrites q with Q of q = QR, and returns R (k x k, column-major). A column that depends on earlier columns becomes
// zero, and so does its diagonal element of R.
std::vector<double> orthonormalise(double* q, std::int64_t rows, std::int64_t k) {
    std::vector<double> r(k * k);
    for (std::int64_t j = 0; j < k; ++j) {
        double* column = q + j * rows;
        const double before = std::sqrt(dot(column, column, rows));
        for (int pass = 0; pass < 2; ++pass) {
            for (std::int64_t i = 0; i < j; ++i) {
                const double part = dot(q + i * rows, column, rows);
                r[j * k + i] += part;
                add(-part, q + i * rows, column, rows);
            }
        }
        const double left = std::sqrt(dot(column, column, rows));
        const bool independent = left > 1e-15 * before;
        r[j * k + j] = independent ? left : 0;
        for (std::int64_t i = 0; i < rows; ++i) column[i] = independent ? column[i] / left : 0;
    }
    return r;
}

// Factors a = W diag(norms) Z^T, leaves W diag(norms) in a, and returns Z. It rotates pairs of columns until all are
// orthogonal.
std::vector<double> jacobi(std::vector<double>& a, std::int64_t k) {
    std::vector<double> z(k * k);
    for (std::int64_t i = 0; i < k; ++i) z[i * k + i] = 1;
    constexpr int kSweeps = 40;  // about six are usual, because the convergence is quadratic
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < kSweeps; ++sweep) {
        rotated = false;
        for (std::int64_t p = 0; p + 1 < k; ++p) {
            for (std::int64_t q = p + 1; q < k; ++q) {
                double *x = a.data() + p * k, *y = a.data() + q * k;
                const double xx = dot(x, x, k), yy = dot(y, y, k), xy = dot(x, y, k);
                if (std::abs(xy) <= 1e-15 * (std::sqrt(xx) * std::sqrt(yy))) continue;
                rotated = true;
                const double zeta = (yy - xx) / (2 * xy);
                const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
                const double c = 1 / std::hypot(1.0, t);
                const CosineSine turn{c, c * t};
                rotate(turn, x, y, k);
                rotate(turn, z.data() + p * k, z.data() + q * k, k);
            }
        }
    }
    return z;
}

// out = q * weights, one column of the product of q with a k x k matrix.
void expand(const std::vector<double>& q, std::span<const double> weights, std::span<double> out) {
    const auto rows = static_cast<std::int64_t>(out.size());
    std::fill(out.begin(), out.end(), 0.0);
    for (std::size_t i = 0; i < weights.size(); ++i) add(weights[i], q.data() + i * rows, out.data(), rows);
}

}  // namespace

double SingularFactors::norm() const noexcept {
    return std::sqrt(std::inner_product(sigma.begin(), sigma.end(), sigma.begin(), 0.0));
}

SingularFactors decompose(Factors factors) {
    const std::int64_t k = factors.rank, m = factors.rows, n = factors.columns;
    const std::vector<double> r_u = orthonormalise(factors.u.data(), m, k);
    const std::vector<double> r_v = orthonormalise(factors.v.data(), n, k);
    std::vector<double> core(k * k);  // R_u R_v^T
    for (std::int64_t j = 0; j < k; ++j) {
        for (std::int64_t i = 0; i < k; ++i) add(r_v[i * k + j], r_u.data() + i * k, core.data() + j * k, k);
    }
    const std::vector<double> z = jacobi(core, k);
    std::vector<double> norms(k);
    for (std::int64_t j = 0; j < k; ++j) norms[j] = std::sqrt(dot(core.data() + j * k, core.data() + j * k, k));
    std::vector<std::int64_t> order(k);
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return norms[a] > norms[b]; });

    SingularFactors made{m, n, {}, {}, {}};
    made.u.resize(m * k);
    made.v.resize(n * k);
    for (std::int64_t place = 0; place < k; ++place) {
        const std::int64_t j = order[place];
        if (norms[j] == 0) break;
        made.sigma.push_back(norms[j]);
        for (std::int64_t i = 0; i < k; ++i) core[j * k + i] /= norms[j];
        expand(factors.u, std::span(core).subspan(j * k, k), std::span(made.u).subspan(place * m, m));
        expand(factors.v, std::span(z).subspan(j * k, k), std::span(made.v).subspan(place * n, n));
    }
    made.u.resize(m * made.rank());
    made.v.resize(n * made.rank());
    return made;
}

}  // namespace penstock::hmatrix
