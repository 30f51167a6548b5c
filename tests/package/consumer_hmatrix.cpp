// A program that uses only the installed headers and libraries: it builds its own kernel as an H-matrix, stores it and
// solves with it.
#include <cmath>
#include <cstdio>
#include <vector>

#include <hmatrix/assemble/assemble.hpp>
#include <hmatrix/system/stored_system.hpp>

namespace hm = penstock::hmatrix;

int main(int count, char** arguments) {
    if (count < 2) return 1;
    std::vector<hm::Point> points;
    for (int i = 0; i < 400; ++i) points.push_back({std::cos(0.1 * i), std::sin(0.1 * i), 0.01 * i});
    const hm::FunctorEntries entries([&](std::int64_t i, std::int64_t j) {
        const hm::Point &a = points[i], &b = points[j];
        return i == j ? 20.0 : 0.1 / std::hypot(a.x - b.x, a.y - b.y, a.z - b.z);
    });
    try {
        const penstock::Context context({.device = "host"});
        hm::Workers workers(2);
        hm::assemble(context, workers, {points, &entries}, arguments[1], {});
        hm::StoredSystem system(context, arguments[1], {});
        std::vector<double> b(points.size(), 1.0), x(points.size());
        const hm::SolveResult found = system.solve(b, x, {});
        std::printf("%lld sweeps, residual %.1e\n", static_cast<long long>(found.sweeps), found.relative_residual);
        return found.converged ? 0 : 1;
    } catch (const penstock::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
