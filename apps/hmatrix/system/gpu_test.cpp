// Compares a stored matrix on a real GPU with the host. Skipped, with the reason, without a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "hmatrix/assemble/assemble.hpp"
#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/kernel/problem.hpp"
#include "hmatrix/system/stored_system.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kSphereTriangles = 20480;

class OnGpu : public testing::TestWithParam<Encoding> {
  protected:
    void SetUp() override {
        std::string why;
        if (cuda_device_count(why) == 0) GTEST_SKIP() << "no GPU: " << why;
        ContextOptions options;
        options.device = "cuda:0";
        context_.emplace(options);
        const LaplaceProblem problem(sphere(kSphereTriangles));
        const FunctorEntries entries(problem.collocation());
        AssembleOptions how;
        how.encoding = GetParam();
        how.eps = 1e-5;
        how.batches = 20;
        Workers workers(0);
        head_ = assemble(*context_, workers, {problem.centroids(), &entries}, path(), how).head;
    }

    std::string path() const { return directory_.file("matrix.hmat"); }

    static SystemOptions options(bool on_host, std::int64_t cache_bytes) {
        SystemOptions how;
        how.cache.pinned_tiers = -1;
        how.cache.pinned_batches = -1;
        how.cache.cache_bytes = cache_bytes;
        how.on_host = on_host;
        return how;
    }

    std::vector<double> random_vectors(std::int64_t count) const {
        std::mt19937 draw(3);
        std::normal_distribution<double> normal;
        std::vector<double> x(head_.unknowns * count);
        for (double& value : x) value = normal(draw);
        return x;
    }

    std::vector<double> product(const SystemOptions& how, const std::vector<double>& x, double accuracy) const {
        StoredSystem system(*context_, path(), how);
        std::vector<double> y(x.size());
        system.multiply(x, y, accuracy);
        return y;
    }

    test::TempDirectory directory_;
    std::optional<Context> context_;
    FileHeader head_{};
};

double difference(const std::vector<double>& one, const std::vector<double>& other) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
        apart += (one[i] - other[i]) * (one[i] - other[i]);
        size += other[i] * other[i];
    }
    return std::sqrt(apart / size);
}

TEST_P(OnGpu, products_are_those_of_the_host_at_every_accuracy_and_for_several_vectors) {
    const double rounding = GetParam() == Encoding::tiers ? 3e-6 : 1e-12;
    const std::vector<double> x = random_vectors(3);
    for (const double accuracy : {1e-1, 1e-2, 1e-3, 0.0}) {
        const auto host = product(options(true, 0), x, accuracy);
        EXPECT_LT(difference(product(options(false, 0), x, accuracy), host), rounding) << accuracy;
    }
}

TEST_P(OnGpu, vectors_of_any_unit_keep_their_digits_and_zeros_stay_zero) {
    const double rounding = GetParam() == Encoding::tiers ? 3e-6 : 1e-12;
    std::vector<double> x = random_vectors(3);
    for (std::int64_t i = 0; i < head_.unknowns; ++i) {
        x[i] *= 1e-60;
        x[head_.unknowns + i] *= 1e60;
        x[2 * head_.unknowns + i] = 0;
    }
    const auto host = product(options(true, 0), x, 0), gpu = product(options(false, 0), x, 0);
    for (int column = 0; column < 2; ++column) {
        const auto part = [&](const std::vector<double>& all) {
            const auto begin = all.begin() + column * head_.unknowns;
            return std::vector<double>(begin, begin + head_.unknowns);
        };
        EXPECT_LT(difference(part(gpu), part(host)), rounding) << column;
    }
    for (std::int64_t i = 2 * head_.unknowns; i < 3 * head_.unknowns; ++i) ASSERT_EQ(gpu[i], 0) << i;
}

TEST_P(OnGpu, batches_pass_through_in_every_way_beside_one_another) {
    const std::vector<double> x = random_vectors(1);
    const auto all = product(options(false, 0), x, 0);
    for (const PathKind path : {PathKind::automatic, PathKind::buffered, PathKind::direct}) {
        for (const int ahead : {0, 3, -1}) {
            SystemOptions how = options(false, head_.file_bytes / 2);
            how.cache.pinned_tiers = 0;
            how.cache.pinned_batches = 0;
            how.cache.path = path;
            how.cache.read_ahead = ahead;
            EXPECT_LT(difference(product(how, x, 0), all), 1e-7) << to_string(path) << ", ahead " << ahead;
        }
    }
    SystemOptions pages = options(false, head_.file_bytes);
    pages.cache.pinned_tiers = 0;
    pages.cache.pinned_batches = 0;
    pages.gpu_initiated = true;
    EXPECT_LT(difference(product(pages, x, 0), all), 1e-7) << "by the device's page cache";
}

TEST_P(OnGpu, a_small_cache_changes_nothing) {
    const std::vector<double> x = random_vectors(1);
    const auto all = product(options(false, 0), x, 0);
    EXPECT_LT(difference(product(options(false, head_.file_bytes / 2), x, 0), all), 1e-7);
}

TEST_P(OnGpu, solves_the_sphere_by_each_method) {
    for (const Method method : {Method::fgmres, Method::gmres, Method::bicgstab, Method::idr, Method::gcr}) {
        StoredSystem system(*context_, path(), options(false, head_.file_bytes / 2));
        std::vector<double> b(head_.unknowns, 1.0), x(head_.unknowns, 0.0);
        SystemSolve how;
        how.options.method = method;
        how.options.tolerance = 1e-5;
        const SolveResult result = system.solve(b, x, how);
        EXPECT_TRUE(result.converged) << to_string(method) << ": " << result.stopped_by;
        const LaplaceProblem problem(sphere(kSphereTriangles));
        EXPECT_NEAR(problem.capacitance_over_4pi_eps0(x), 1, 3e-4) << to_string(method);
    }
}

INSTANTIATE_TEST_SUITE_P(Encodings, OnGpu, testing::Values(Encoding::tiers, Encoding::fp64),
                         [](const auto& chosen) { return chosen.param == Encoding::tiers ? "tiers" : "fp64"; });

}  // namespace
}  // namespace penstock::hmatrix
