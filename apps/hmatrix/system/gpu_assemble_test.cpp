// Compares a matrix assembled on a real GPU with the same matrix assembled on the host. Skipped, with the reason,
// without a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "context/test_files.hpp"
#include "hmatrix/assemble/assemble.hpp"
#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/gpu/functor_on_gpu.hpp"
#include "hmatrix/kernel/problem.hpp"
#include "hmatrix/system/stored_system.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kTriangles = 20480;

class GpuAssembly : public testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        if (cuda_device_count(why) == 0) GTEST_SKIP() << "no GPU: " << why;
        ContextOptions options;
        options.device = "cuda:0";
        context_.emplace(options);
    }

    std::string path(AssembleOn on) const { return directory_.file(on == AssembleOn::gpu ? "gpu.hmat" : "host.hmat"); }

    Assembled made(const MatrixProblem& problem, AssembleOptions how, AssembleOn on) {
        how.on = on;
        return assemble(*context_, workers_, problem, path(on), how);
    }

    // A product computed on the host, with all tiers of the file.
    std::vector<double> product(AssembleOn on, const std::vector<double>& x) const {
        SystemOptions how;
        how.cache.pinned_tiers = -1;
        how.cache.pinned_batches = -1;
        how.on_host = true;
        StoredSystem system(*context_, path(on), how);
        std::vector<double> y(x.size());
        system.multiply(x, y, 0);
        return y;
    }

    double products_apart(std::int64_t unknowns) const {
        std::mt19937 draw(3);
        std::normal_distribution<double> normal;
        std::vector<double> x(unknowns);
        for (double& value : x) value = normal(draw);
        const auto gpu = product(AssembleOn::gpu, x), host = product(AssembleOn::host, x);
        double apart = 0, size = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            apart += (gpu[i] - host[i]) * (gpu[i] - host[i]);
            size += host[i] * host[i];
        }
        return std::sqrt(apart / size);
    }

    void compare(const MatrixProblem& problem, const AssembleOptions& how) {
        made(problem, how, AssembleOn::gpu);  // warms up: the first use of a GPU takes seconds
        const Assembled gpu = made(problem, how, AssembleOn::gpu), host = made(problem, how, AssembleOn::host);
        RecordProperty("gpu_assemble_s", std::to_string(gpu.assemble_s));
        RecordProperty("host_assemble_s", std::to_string(host.assemble_s));
        RecordProperty("left_to_host", std::to_string(gpu.left_to_host));
        EXPECT_EQ(gpu.on, "cuda:0");
        EXPECT_EQ(host.on, "host");
        EXPECT_EQ(gpu.head.leaves, host.head.leaves);
        EXPECT_EQ(gpu.head.low_rank_leaves, host.head.low_rank_leaves);
        EXPECT_EQ(gpu.head.batches, host.head.batches);
        const auto near = [](std::int64_t one, std::int64_t other, double share) {
            EXPECT_NEAR(static_cast<double>(one) / static_cast<double>(other), 1, share);
        };
        near(gpu.head.file_bytes, host.head.file_bytes, 0.005);
        near(gpu.head.fp64_bytes, host.head.fp64_bytes, 0.005);
        near(gpu.head.rank_sum, host.head.rank_sum, 0.005);
        near(gpu.evaluated, host.evaluated, 0.005);
        EXPECT_LT(gpu.left_to_host, gpu.head.leaves / 1000);
        EXPECT_LT(gpu.head.sampled_error, how.eps);
        EXPECT_LT(products_apart(gpu.head.unknowns), how.eps);
    }

    test::TempDirectory directory_;
    std::optional<Context> context_;
    Workers workers_{0};
};

class GpuAssemblyOf : public GpuAssembly, public testing::WithParamInterface<std::tuple<Encoding, double>> {};

TEST_P(GpuAssemblyOf, collocation_makes_the_matrix_of_the_host) {
    const LaplaceProblem problem(sphere(kTriangles));
    const FunctorEntries entries(problem.collocation());
    const auto on_gpu = collocation_on_gpu(problem);
    AssembleOptions how;
    how.encoding = std::get<0>(GetParam());
    how.eps = std::get<1>(GetParam());
    how.batches = 7;
    compare({problem.centroids(), &entries, &on_gpu}, how);

    SystemOptions opened;
    opened.cache.pinned_tiers = -1;
    opened.cache.pinned_batches = -1;
    opened.on_host = true;
    StoredSystem system(*context_, path(AssembleOn::gpu), opened);
    std::vector<double> b(problem.unknowns(), 1.0), x(problem.unknowns(), 0.0);
    SystemSolve solving;
    solving.options.tolerance = 1e-5;
    EXPECT_TRUE(system.solve(b, x, solving).converged);
    EXPECT_NEAR(problem.capacitance_over_4pi_eps0(x), 1, 3e-4);
}

INSTANTIATE_TEST_SUITE_P(Encodings, GpuAssemblyOf,
                         testing::Combine(testing::Values(Encoding::tiers, Encoding::fp64),
                                          testing::Values(1e-4, 1e-6)),
                         [](const auto& chosen) {
                             return std::string(std::get<0>(chosen.param) == Encoding::tiers ? "tiers" : "fp64") +
                                    (std::get<1>(chosen.param) > 1e-5 ? "_to_1e_4" : "_to_1e_6");
                         });

TEST_F(GpuAssembly, galerkin_makes_the_matrix_of_the_host) {
    const LaplaceProblem problem(sphere(1280));
    const FunctorEntries entries(problem.galerkin());
    const auto on_gpu = galerkin_on_gpu(problem);
    compare({problem.centroids(), &entries, &on_gpu}, {.eps = 1e-5, .batches = 3});
}

TEST_F(GpuAssembly, little_memory_for_groups_changes_nothing) {
    const LaplaceProblem problem(bumpy(3000));
    const FunctorEntries entries(problem.collocation());
    const auto on_gpu = collocation_on_gpu(problem);
    AssembleOptions how{.eps = 1e-5, .batches = 3};
    how.gpu_bytes = 4 << 20;
    compare({problem.centroids(), &entries, &on_gpu}, how);
}

TEST_F(GpuAssembly, automatic_takes_the_gpu_where_there_is_a_functor_for_it) {
    const LaplaceProblem problem(sphere(1280));
    const FunctorEntries entries(problem.collocation());
    const auto on_gpu = collocation_on_gpu(problem);
    const MatrixProblem with{problem.centroids(), &entries, &on_gpu}, without{problem.centroids(), &entries};
    EXPECT_EQ(made(with, {}, AssembleOn::automatic).on, "cuda:0");
    EXPECT_EQ(made(without, {}, AssembleOn::automatic).on, "host");
    EXPECT_EQ(made(with, {.aca_plus = true}, AssembleOn::automatic).on, "host");
    EXPECT_THROW(made(without, {}, AssembleOn::gpu), Error);
    EXPECT_THROW(made(with, {.aca_plus = true}, AssembleOn::gpu), Error);
}

// Column 77 is NaN, for the GPU alone or for the host too.
class GpuAssemblySpoilt : public GpuAssembly {
  protected:
    GpuAssemblySpoilt() : problem_(sphere(1280)), panels_(problem_.panels()) {
        panels_[77].base = std::numeric_limits<double>::quiet_NaN();
    }
    FunctorOnGpu<LaplaceCollocation> on_gpu() const {
        return FunctorOnGpu<LaplaceCollocation>([this](gpu::Tables& tables) {
            return LaplaceCollocation{tables.copy(panels_), &tables.copy(problem_.centroids())->x};
        });
    }
    LaplaceProblem problem_;
    std::vector<Panel> panels_;
};

TEST_F(GpuAssemblySpoilt, entries_that_are_no_numbers_are_the_same_error) {
    const FunctorEntries entries(LaplaceCollocation{panels_.data(), &problem_.centroids().data()->x});
    const auto there = on_gpu();
    for (const AssembleOn on : {AssembleOn::host, AssembleOn::gpu}) {
        try {
            made({problem_.centroids(), &entries, &there}, {.batches = 2}, on);
            FAIL() << "accepted";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
            EXPECT_NE(std::string(error.what()).find("column 77 is not a finite number"), std::string::npos)
                << error.what();
        }
    }
}

TEST_F(GpuAssemblySpoilt, what_the_gpu_cannot_do_the_host_does_and_counts) {
    const FunctorEntries entries(problem_.collocation());
    const auto there = on_gpu();
    const MatrixProblem problem{problem_.centroids(), &entries, &there};
    const Assembled gpu = made(problem, {.eps = 1e-5}, AssembleOn::gpu);
    made(problem, {.eps = 1e-5}, AssembleOn::host);
    EXPECT_GT(gpu.left_to_host, 5);
    EXPECT_LT(gpu.left_to_host, gpu.head.leaves / 4);
    EXPECT_LT(gpu.head.sampled_error, 1e-5);
    EXPECT_LT(products_apart(gpu.head.unknowns), 1e-5);
}

}  // namespace
}  // namespace penstock::hmatrix
