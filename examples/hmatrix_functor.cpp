// An H-matrix of your own kernel, in C++: assembled on the GPU where there is one, on all cores of the host elsewhere,
// from the same functor. Link the CMake target penstock_hmatrix, then
//
//     ./hmatrix_functor yukawa.hmat 4000
#include "hmatrix_functor.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "hmatrix/assemble/assemble.hpp"
#include "hmatrix/gpu/functor_on_gpu.hpp"
#include "penstock/error.hpp"

namespace hm = penstock::hmatrix;

static std::vector<hm::Point> points_in_a_box(int count) {
    std::mt19937_64 random(1);
    const auto number = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    std::vector<hm::Point> points(count);
    for (hm::Point& point : points) point = {4 * number(), number(), number()};
    return points;
}

int main(int count, char** arguments) try {
    const std::vector<hm::Point> points = points_in_a_box(count > 2 ? std::atoi(arguments[2]) : 4000);
    const double kappa = 2, diagonal = 50;
    const hm::FunctorEntries on_host(Yukawa{&points.data()->x, kappa, diagonal});
    const hm::FunctorOnGpu<Yukawa> on_gpu([&](hm::gpu::Tables& tables) {
        return Yukawa{&tables.copy(points)->x, kappa, diagonal};  // the points in the GPU's memory
    });

    const penstock::Context context;
    hm::Workers workers;
    hm::AssembleOptions how;
    how.eps = 1e-5;
    const char* const file = count > 1 ? arguments[1] : "yukawa.hmat";
    const hm::Assembled made = hm::assemble(context, workers, {points, &on_host, &on_gpu}, file, how);
    std::printf("%s: %lld bytes for %lld doubles, off by %.1e on sampled rows, assembled on %s\n", file,
                static_cast<long long>(made.head.file_bytes),
                static_cast<long long>(points.size() * points.size()), made.head.sampled_error, made.on.c_str());
    return made.head.sampled_error <= how.eps ? 0 : 1;
} catch (const penstock::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
