// Leaves made group by group on the emulated GPU: the host's code as on a real GPU, with the kernels run by host
// threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/gpu/functor_on_gpu.hpp"
#include "hmatrix/gpu/leaves/test_leaves.hpp"
#include "penstock/error.hpp"
#include "support/sanitized.hpp"

namespace penstock::hmatrix {
namespace {

ContextOptions on_host() {
    ContextOptions options;
    options.device = "host";
    return options;
}

// Collocation with one entry that is NaN.
struct Spoilt {
    LaplaceCollocation good;
    std::int64_t row;
    std::int64_t column;
    double operator()(std::int64_t i, std::int64_t j) const {
        return i == row && j == column ? std::numeric_limits<double>::quiet_NaN() : good(i, j);
    }
};

class GroupLeafMaker : public testing::Test {
  protected:
    GroupLeafMaker() : problem_(sphere(penstock::test::kSanitized ? 720 : 1280)), context_(on_host()), workers_(2) {
        tree_ = build_cluster_tree(problem_.centroids(), 15);
        leaves_ = partition(tree_, {});
        for (std::size_t i = 0; i <= 4; ++i) batches_.push_back(leaves_.size() * i / 4);
    }

    LeafWork work(const Entries& entries, std::int64_t gpu_bytes) const {
        LeafWork made{leaves_, batches_, tree_.order, &entries, {}, gpu_bytes};
        made.aca.eps = 1e-5;
        return made;
    }

    struct Made {
        std::vector<std::optional<AcaResult>> leaves;
        std::int64_t left_to_host = 0;
    };
    Made all_of(LeafMaker& maker) const {
        Made made;
        made.leaves.resize(leaves_.size());
        std::mutex mutex;
        for (std::size_t batch = 0; batch + 1 < batches_.size(); ++batch) {
            maker.make(static_cast<std::int64_t>(batch), [&](int, std::int64_t leaf, AcaResult result) {
                const std::lock_guard lock(mutex);
                EXPECT_FALSE(made.leaves[leaf]) << "twice";
                EXPECT_GE(leaf, static_cast<std::int64_t>(batches_[batch]));
                EXPECT_LT(leaf, static_cast<std::int64_t>(batches_[batch + 1]));
                made.leaves[leaf] = std::move(result);
            });
        }
        made.left_to_host = maker.left_to_host();
        return made;
    }

    template <class Functor>
    Made in_groups(const Functor& functor, std::int64_t gpu_bytes) {
        const FunctorEntries entries(functor);
        const FunctorOnGpu<Functor> there([&](gpu::Tables&) { return functor; }, &test::launch_on_host<Functor>);
        const auto maker = there.leaf_maker(context_, workers_, work(entries, gpu_bytes));
        return all_of(*maker);
    }

    Made by_host() {
        const FunctorEntries entries(problem_.collocation());
        const auto maker = make_host_leaf_maker(workers_, work(entries, 1));
        return all_of(*maker);
    }

    LaplaceProblem problem_;
    Context context_;
    Workers workers_;
    ClusterTree tree_;
    std::vector<Leaf> leaves_;
    std::vector<std::size_t> batches_;
};

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
    double most = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        most = std::max(most, std::abs(a[i] - b[i]));
        size = std::max(size, std::abs(b[i]));
    }
    return size > 0 ? most / size : most;
}

TEST_F(GroupLeafMaker, makes_the_leaves_of_the_host_in_groups_of_any_size) {
    const Made wanted = by_host();
    EXPECT_EQ(wanted.left_to_host, 0);
    for (const std::int64_t bytes : {std::int64_t{512} << 20, std::int64_t{1} << 20, std::int64_t{200'000}}) {
        const Made found = in_groups(problem_.collocation(), bytes);
        EXPECT_EQ(found.left_to_host, 0) << bytes;
        for (std::size_t i = 0; i < leaves_.size(); ++i) {
            const AcaResult &one = *wanted.leaves[i], &other = *found.leaves[i];
            ASSERT_EQ(other.factors.rank, one.factors.rank) << i;
            EXPECT_EQ(other.factors.low_rank, one.factors.low_rank);
            EXPECT_EQ(other.factors.rows, one.factors.rows);
            EXPECT_EQ(other.told_rank, one.told_rank);
            EXPECT_EQ(other.evaluated, one.evaluated);
            EXPECT_EQ(other.converged, one.converged);
            ASSERT_EQ(other.factors.u.size(), one.factors.u.size());
            ASSERT_EQ(other.factors.v.size(), one.factors.v.size());
            EXPECT_LT(farthest(other.factors.u, one.factors.u), 1e-9);
            EXPECT_LT(farthest(other.factors.v, one.factors.v), 1e-9);
        }
    }
}

TEST_F(GroupLeafMaker, leaves_without_room_are_left_to_the_host_and_counted) {
    const Made wanted = by_host();
    for (const std::int64_t bytes : {std::int64_t{20'000}, std::int64_t{1}}) {
        const Made found = in_groups(problem_.collocation(), bytes);
        EXPECT_GT(found.left_to_host, 0) << bytes;
        EXPECT_EQ(found.left_to_host == static_cast<std::int64_t>(leaves_.size()), bytes == 1);
        for (std::size_t i = 0; i < leaves_.size(); ++i) {
            ASSERT_EQ(found.leaves[i]->factors.rank, wanted.leaves[i]->factors.rank) << i;
            EXPECT_LT(farthest(found.leaves[i]->factors.u, wanted.leaves[i]->factors.u), 1e-9);
        }
    }
}

TEST_F(GroupLeafMaker, an_entry_that_is_no_number_is_the_error_of_the_host) {
    // One entry is on the diagonal, in a dense leaf. The other is the first that the cross approximation of a low-rank
    // leaf evaluates.
    const auto low_rank = std::find_if(leaves_.begin(), leaves_.end(), [](const Leaf& leaf) { return leaf.low_rank; });
    const std::int64_t begin = from_last_row(*low_rank) ? low_rank->row + low_rank->rows - 1 : low_rank->row;
    const std::pair<std::int64_t, std::int64_t> places[] = {
        {3, 3}, {tree_.order[begin], tree_.order[low_rank->column]}};
    for (const auto& [row, column] : places) {
        try {
            in_groups(Spoilt{problem_.collocation(), row, column}, std::int64_t{1} << 20);
            FAIL() << "accepted";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
            const std::string where = "row " + std::to_string(row) + ", column " + std::to_string(column);
            EXPECT_NE(std::string(error.what()).find(where), std::string::npos) << error.what();
        }
    }
}

TEST_F(GroupLeafMaker, may_be_left_in_the_middle) {
    const FunctorEntries entries(problem_.collocation());
    const FunctorOnGpu<LaplaceCollocation> there([&](gpu::Tables&) { return problem_.collocation(); },
                                                 &test::launch_on_host<LaplaceCollocation>);
    const auto maker = there.leaf_maker(context_, workers_, work(entries, 200'000));
    EXPECT_THROW(maker->make(0, [](int, std::int64_t, const AcaResult&) { throw std::runtime_error("enough"); }),
                 std::runtime_error);
}

TEST_F(GroupLeafMaker, a_failed_launch_is_an_error_with_its_cause) {
    const FunctorEntries entries(problem_.collocation());
    const gpu::LaunchGroup failing = [](const void*, const gpu::Group&, void*) { return "no such kernel"; };
    const FunctorOnGpu<LaplaceCollocation> there([&](gpu::Tables&) { return problem_.collocation(); }, failing);
    const auto maker = there.leaf_maker(context_, workers_, work(entries, 200'000));
    try {
        maker->make(0, [](int, std::int64_t, const AcaResult&) {});
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.info().cause, "no such kernel");
    }
}

TEST_F(GroupLeafMaker, a_functor_that_was_not_compiled_for_a_gpu_is_refused) {
    const FunctorEntries entries(problem_.collocation());
    const FunctorOnGpu<LaplaceCollocation> there([&](gpu::Tables&) { return problem_.collocation(); }, nullptr);
    EXPECT_THROW(there.leaf_maker(context_, workers_, work(entries, 200'000)), Error);
}

TEST_F(GroupLeafMaker, tables_are_copies_in_memory_of_the_device) {
    const FunctorEntries entries(problem_.collocation());
    const Panel* panels = nullptr;
    const FunctorOnGpu<LaplaceCollocation> there(
        [&](gpu::Tables& tables) {
            panels = tables.copy(problem_.panels());
            return LaplaceCollocation{panels, &tables.copy(problem_.centroids())->x};
        },
        &test::launch_on_host<LaplaceCollocation>);
    const auto maker = there.leaf_maker(context_, workers_, work(entries, std::int64_t{1} << 20));
    EXPECT_NE(panels, problem_.panels().data());
    EXPECT_EQ(all_of(*maker).leaves.back()->factors.rank, by_host().leaves.back()->factors.rank);
}

}  // namespace
}  // namespace penstock::hmatrix
