// The product of leaves as a GPU does it, by one thread of the host: the same source, against the host's own loops.
#include "hmatrix/gpu/product.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "context/test_files.hpp"
#include "hmatrix/assemble/assemble.hpp"
#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/gpu/crew_rig.hpp"
#include "hmatrix/gpu/plan.hpp"
#include "hmatrix/kernel/problem.hpp"
#include "hmatrix/multiply/cached_source.hpp"
#include "hmatrix/multiply/host_product.hpp"
#include "hmatrix/multiply/stored_matrix.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kTriangles = 1280;

using gpu::Crew;

ContextOptions on_host() {
    ContextOptions options;
    options.device = "host";
    return options;
}

class GpuProduct : public testing::TestWithParam<Encoding> {
  protected:
    GpuProduct() : context_(on_host()), workers_(2) {
        const LaplaceProblem problem(sphere(kTriangles));
        const FunctorEntries entries(problem.collocation());
        AssembleOptions options;
        options.encoding = GetParam();
        options.eps = 1e-5;
        options.batches = 3;
        assemble(context_, workers_, {problem.centroids(), &entries}, path(), options);
        file_.emplace(MatrixFile::open(context_, workers_, path()));
        source_ = std::make_unique<CachedSource>(context_, workers_, *file_, CacheOptions{});
        std::mt19937 draw(7);
        std::normal_distribution<double> normal;
        for (double& value : x_) value = normal(draw);
    }

    std::string path() const { return directory_.file("matrix.hmat"); }

    std::vector<double> by_the_host(int tiers) {
        HostProduct product(*file_, workers_);
        StoredMatrix matrix(*file_, *source_, product, StoredOptions{tiers, false});
        std::vector<double> y(kTriangles);
        matrix.apply(x_.data(), y.data(), 1, 0);
        return y;
    }

    template <class Visit>
    static void each_job(const gpu::Plan& plan, const gpu::BatchPlan& part, const Visit& visit) {
        for (std::int64_t j = 0; j < part.warp_jobs; ++j) visit(plan.warp_jobs[part.first_warp_job + j]);
        for (std::int64_t j = 0; j < part.block_jobs; ++j) visit(plan.block_jobs[part.first_block_job + j]);
    }

    template <class E>
    std::vector<double> as_a_gpu(int tiers, gpu::Room room, bool crew) {
        const gpu::Plan plan = gpu::plan(*file_, how_);
        std::vector<double> y(kTriangles);
        const std::vector<typename E::Real> x(x_.begin(), x_.end());
        std::vector<typename E::Real> shared(room.columns + room.vectors);
        std::vector<std::int64_t> order(file_->head().batches);
        std::iota(order.begin(), order.end(), 0);
        source_->begin({order, {}, tiers});
        for (const std::int64_t b : order) {
            const BatchView view = source_->take(b);
            const gpu::BatchPlan& part = plan.batches[b];
            gpu::Batch batch{};
            batch.tiers_used = tiers;
            batch.leaves = plan.leaves.data() + part.first_leaf;
            batch.pieces = plan.pieces.data();
            std::copy(std::begin(view.tiers), std::end(view.tiers), batch.tiers);
            const auto run = [&](auto team) {
                gpu::LeafTeam<E, decltype(team)> leaves(team, batch, shared.data(), room);
                each_job(plan, part, [&](const gpu::Job& job) { leaves.run(job, x.data(), y.data()); });
            };
            if (crew) {
                Crew::Shared between;
                std::vector<std::jthread> threads;
                for (int i = 0; i < Crew::kLanes * Crew::kWorkers; ++i) threads.emplace_back(run, Crew{&between, i});
            } else {
                run(gpu::Alone{});
            }
            source_->give_back(b);
        }
        return y;
    }

    std::vector<double> as_a_gpu(int tiers, gpu::Room room, bool crew = false) {
        return GetParam() == Encoding::tiers ? as_a_gpu<gpu::Digits>(tiers, room, crew)
                                             : as_a_gpu<gpu::Doubles>(tiers, room, crew);
    }

    test::TempDirectory directory_;
    Context context_;
    Workers workers_;
    std::optional<MatrixFile> file_;
    std::unique_ptr<CachedSource> source_;
    std::vector<double> x_ = std::vector<double>(kTriangles);
    gpu::PlanOptions how_;
};

double difference(const std::vector<double>& one, const std::vector<double>& other) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
        apart += (one[i] - other[i]) * (one[i] - other[i]);
        size += other[i] * other[i];
    }
    return std::sqrt(apart / size);
}

TEST_P(GpuProduct, agrees_with_the_host_for_every_number_of_tiers) {
    const double rounding = GetParam() == Encoding::tiers ? 2e-6 : 1e-13;
    for (int tiers = 1; tiers <= file_->tiers(); ++tiers) {
        const auto host = by_the_host(tiers);
        EXPECT_LT(difference(as_a_gpu(tiers, {gpu::kBlockColumns, gpu::kBlockRank}), host), rounding) << tiers;
    }
}

TEST_P(GpuProduct, takes_columns_in_parts_where_the_room_for_them_is_small) {
    const double rounding = GetParam() == Encoding::tiers ? 2e-6 : 1e-13;
    EXPECT_LT(difference(as_a_gpu(file_->tiers(), {8, gpu::kBlockRank}), by_the_host(0)), rounding);
}

TEST_P(GpuProduct, is_the_same_by_many_threads) {
    const double rounding = GetParam() == Encoding::tiers ? 2e-6 : 1e-13;
    const auto crew = as_a_gpu(file_->tiers(), {64, gpu::kBlockRank}, true);
    EXPECT_LT(difference(crew, by_the_host(0)), rounding);
}

TEST_P(GpuProduct, leaves_are_shared_by_several_jobs_where_they_are_large) {
    how_ = {256, 1024};
    const gpu::Plan plan = gpu::plan(*file_, how_);
    const auto shared = [](const gpu::Job& job) { return job.vectors_begin > 0; };
    EXPECT_GT(std::count_if(plan.block_jobs.begin(), plan.block_jobs.end(), shared), 100);
    const double rounding = GetParam() == Encoding::tiers ? 2e-6 : 1e-13;
    for (int tiers = 1; tiers <= file_->tiers(); ++tiers) {
        EXPECT_LT(difference(as_a_gpu(tiers, {64, gpu::kBlockRank}), by_the_host(tiers)), rounding) << tiers;
    }
    EXPECT_LT(difference(as_a_gpu(file_->tiers(), {64, gpu::kBlockRank}, true), by_the_host(0)), rounding);
}

TEST_P(GpuProduct, plan_names_each_leaf_once_and_joins_those_of_the_same_rows) {
    const gpu::Plan plan = gpu::plan(*file_);
    std::vector<int> seen(plan.leaves.size());
    std::int64_t joined = 0, shared = 0;
    for (const gpu::BatchPlan& part : plan.batches) {
        const auto visit = [&](const gpu::Job& job) {
            const std::int64_t first = part.first_leaf + job.first;
            joined += job.count > 1 ? 1 : 0;
            for (int i = 0; i < job.count; ++i) {
                // Of jobs that share a leaf, the one with its first vectors counts.
                seen[first + i] += job.vectors_begin == 0 ? 1 : 0;
                EXPECT_EQ(plan.leaves[first + i].row, plan.leaves[first].row);
                EXPECT_EQ(plan.leaves[first + i].rows, plan.leaves[first].rows);
            }
            shared += job.vectors_begin > 0 ? 1 : 0;
        };
        each_job(plan, part, visit);
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::int64_t>(seen.size()));
    EXPECT_GT(joined, 100);
    EXPECT_EQ(shared, 0) << "all leaves are small here";
}

INSTANTIATE_TEST_SUITE_P(Encodings, GpuProduct, testing::Values(Encoding::tiers, Encoding::fp64),
                         [](const auto& chosen) { return chosen.param == Encoding::tiers ? "tiers" : "fp64"; });

}  // namespace
}  // namespace penstock::hmatrix
