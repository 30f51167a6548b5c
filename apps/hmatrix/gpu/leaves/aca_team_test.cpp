// Compares leaves made by a team of one or eight threads with the host's own cross approximation: the same pivots and
// ranks.
#include "hmatrix/gpu/leaves/aca_team.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "hmatrix/build/aca.hpp"
#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/gpu/leaves/test_leaves.hpp"
#include "hmatrix/kernel/problem.hpp"
#include "hmatrix/tree/blocks.hpp"

namespace penstock::hmatrix {
namespace {

using Function = std::function<double(std::int64_t, std::int64_t)>;

// A functor as a GPU takes it: it holds only an address.
struct Called {
    const Function* function;
    double operator()(std::int64_t row, std::int64_t column) const { return (*function)(row, column); }
};

std::vector<std::int64_t> range(std::int64_t count) {
    std::vector<std::int64_t> all(count);
    std::iota(all.begin(), all.end(), 0);
    return all;
}

// The leaves as tasks of one group, with room for rank `room` or for their full rank.
class Tasks {
  public:
    Tasks(const std::vector<Leaf>& leaves, const std::vector<std::int64_t>& order, const AcaOptions& options, int room)
        : order_(order) {
        gpu::LeafTask next{};
        for (const Leaf& leaf : leaves) {
            next.row = leaf.row;
            next.column = leaf.column;
            next.rows = static_cast<std::int32_t>(leaf.rows);
            next.columns = static_cast<std::int32_t>(leaf.columns);
            next.low_rank = leaf.low_rank ? 1 : 0;
            next.room = std::min({next.rows, next.columns, room});
            next.from_last_row = options.from_last_row ? 1 : leaf.row <= leaf.column ? 1 : 0;
            tasks_.push_back(next);
            next.values += leaf.low_rank ? next.room * (leaf.rows + leaf.columns) : leaf.entries();
            next.used += leaf.rows + leaf.columns;
        }
        // Filled with NaN: numbers of an earlier group must not matter.
        values_.assign(next.values, std::numeric_limits<double>::quiet_NaN());
        used_.assign(next.used, 1);
        results_.resize(tasks_.size());
        group_ = {order_.data(),   tasks_.data(),  results_.data(), values_.data(), used_.data(),
                  options.eps,     options.zero,   options.told_eps,
                  static_cast<std::int32_t>(options.check_entries), 0, 0, static_cast<std::int32_t>(tasks_.size())};
    }

    template <class Functor>
    const std::vector<gpu::LeafResult>& by(const Functor& functor, bool crew) {
        const int tasks = static_cast<int>(tasks_.size());
        if (crew) {
            test::run_crew(functor, group_, 0, tasks);
        } else {
            for (int task = 0; task < tasks; ++task) test::run_alone(functor, group_, task);
        }
        return results_;
    }

    Factors factors(std::size_t i) const {
        const gpu::LeafTask& task = tasks_[i];
        Factors made{task.rows, task.columns, results_[i].rank, task.low_rank != 0, {}, {}};
        const double* const u = values_.data() + task.values;
        const double* const v = u + std::int64_t{task.rows} * task.room;
        made.u.assign(u, u + (made.low_rank ? made.rank * made.rows : made.rows * made.columns));
        if (made.low_rank) made.v.assign(v, v + made.rank * made.columns);
        return made;
    }

  private:
    std::vector<std::int64_t> order_;
    std::vector<gpu::LeafTask> tasks_;
    std::vector<gpu::LeafResult> results_;
    std::vector<double> values_;
    std::vector<unsigned char> used_;
    gpu::Group group_{};
};

double norm(const std::vector<double>& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

// The largest difference between the numbers, relative to the largest number.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
    double most = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        most = std::max(most, std::abs(a[i] - b[i]));
        size = std::max(size, std::abs(b[i]));
    }
    return size > 0 ? most / size : most;
}

// The largest difference between crosses, relative to the norm of the first cross and so of the block.
double crosses_apart(const Factors& a, const Factors& b) {
    double most = 0, first = 0;
    for (std::int64_t k = 0; k < a.rank; ++k) {
        const auto column = [&](const std::vector<double>& of, std::int64_t size) {
            return std::vector<double>(of.begin() + k * size, of.begin() + (k + 1) * size);
        };
        const auto ua = column(a.u, a.rows), ub = column(b.u, a.rows), va = column(a.v, a.columns);
        const double size = norm(ub) * norm(va);
        first = std::max(first, size);
        most = std::max({most, size * apart(ua, ub), size * apart(va, column(b.v, a.columns))});
    }
    return first > 0 ? most / first : 0;
}

void expect_same(const AcaResult& wanted, const gpu::LeafResult& found, const Factors& factors) {
    ASSERT_EQ(found.rank, wanted.factors.rank);
    EXPECT_EQ(found.told_rank, wanted.told_rank);
    EXPECT_EQ(found.repairs, wanted.repairs);
    EXPECT_EQ(found.evaluated, wanted.evaluated);
    EXPECT_EQ(found.ending, wanted.converged ? gpu::Ending::converged : gpu::Ending::full_rank);
    EXPECT_LT(crosses_apart(factors, wanted.factors), 1e-12);
}

template <class Functor>
void expect_same_leaves(const LaplaceProblem& problem, const Functor& functor, double eps, bool crew) {
    const FunctorEntries entries(functor);
    const ClusterTree tree = build_cluster_tree(problem.centroids(), 15);
    const std::vector<Leaf> all = partition(tree, {});
    std::vector<Leaf> leaves;
    const std::size_t step = crew ? 151 : 3;  // eight threads wait for each other, so few leaves must suffice
    for (std::size_t i = 0; i < all.size(); i += step) leaves.push_back(all[i]);
    AcaOptions options;
    options.eps = eps;
    options.told_eps = 2 * eps;
    Tasks tasks(leaves, tree.order, options, 1000);
    const auto& found = tasks.by(functor, crew);
    const std::span<const std::int64_t> order(tree.order);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const Leaf& leaf = leaves[i];
        const auto rows = order.subspan(leaf.row, leaf.rows), columns = order.subspan(leaf.column, leaf.columns);
        const Factors made = tasks.factors(i);
        if (leaf.low_rank) {
            options.from_last_row = leaf.row <= leaf.column;
            expect_same(approximate(entries, rows, columns, options), found[i], made);
            continue;
        }
        std::vector<double> column(leaf.rows);
        for (std::int64_t j = 0; j < leaf.columns; ++j) {
            entries.column(rows, columns[j], column.data());
            for (std::int64_t k = 0; k < leaf.rows; ++k) ASSERT_DOUBLE_EQ(made.u[j * leaf.rows + k], column[k]);
        }
        EXPECT_EQ(found[i].evaluated, leaf.entries());
    }
}

class AcaTeam : public testing::TestWithParam<bool> {
  protected:
    // Compares the block of entries f(i, j) with the host's approximation.
    static void compare(std::int64_t rows, std::int64_t columns, const Function& f, const AcaOptions& options) {
        const FunctorEntries<Function> entries(f);
        const auto numbers = range(std::max(rows, columns));
        const std::span<const std::int64_t> all(numbers);
        const auto wanted = approximate(entries, all.first(rows), all.first(columns), options);
        Tasks tasks({leaf(rows, columns)}, numbers, options, 1000);
        const auto found = tasks.by(Called{&f}, GetParam());
        expect_same(wanted, found[0], tasks.factors(0));
    }
    static gpu::LeafResult result(std::int64_t rows, std::int64_t columns, const Function& f, int room) {
        Tasks tasks({leaf(rows, columns)}, range(std::max(rows, columns)), from_last(), room);
        return tasks.by(Called{&f}, GetParam())[0];
    }
    static Leaf leaf(std::int64_t rows, std::int64_t columns) {
        Leaf made{};
        made.rows = rows;
        made.columns = columns;
        made.low_rank = true;
        return made;
    }
    static AcaOptions from_last() {
        AcaOptions options;
        options.eps = 1e-6;
        options.from_last_row = true;
        return options;
    }
};

double smooth(std::int64_t i, std::int64_t j) {
    return 1 / (1 + 0.01 * static_cast<double>(i) + 0.013 * static_cast<double>(j));
}

std::vector<double> random_numbers(int count) {
    std::mt19937_64 random(3);
    std::vector<double> made(count);
    for (double& value : made) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    return made;
}

TEST_P(AcaTeam, leaves_of_surfaces_are_those_of_the_host) {
    for (const Mesh& mesh : {sphere(1280), cube(768), torus(900)}) {
        const LaplaceProblem problem(mesh);
        for (const double eps : {1e-3, 1e-6}) expect_same_leaves(problem, problem.collocation(), eps, GetParam());
    }
}

TEST_P(AcaTeam, galerkin_leaves_are_those_of_the_host) {
    const LaplaceProblem problem(sphere(320));
    expect_same_leaves(problem, problem.galerkin(), 1e-5, GetParam());
}

TEST_P(AcaTeam, narrow_and_zero_blocks_and_blocks_with_zeros_are_those_of_the_host) {
    const auto zero = [](std::int64_t, std::int64_t) { return 0.0; };
    const auto rows = [](std::int64_t i, std::int64_t j) { return i < 20 ? 0 : smooth(i, j); };
    const auto two = [](std::int64_t i, std::int64_t j) { return (i < 20) == (j < 30) ? smooth(i, j) : 0; };
    const auto last = [](std::int64_t i, std::int64_t j) { return i == 39 ? smooth(i, j) : 0; };
    const auto diagonal = [](std::int64_t i, std::int64_t j) { return i == j ? 1.0 + static_cast<double>(i) : 0; };
    AcaOptions options = from_last();
    options.check_entries = 400;
    for (const Function& f :
         {Function(zero), Function(rows), Function(two), Function(last), Function(diagonal), Function(smooth)}) {
        compare(40, 60, f, options);
        compare(1, 60, f, options);
        compare(40, 1, f, options);
        compare(1, 1, f, options);
    }
}

TEST_P(AcaTeam, a_spike_is_found_and_mended_as_on_the_host) {
    const Function spiked = [](std::int64_t i, std::int64_t j) {
        return smooth(i, j) + (i == 11 && j == 43 ? 0.5 : 0.0);
    };
    AcaOptions options = from_last();
    options.check_entries = 20000;
    compare(60, 50, spiked, options);
    EXPECT_EQ(result(60, 50, smooth, 50).repairs, 0);
}

TEST_P(AcaTeam, noise_ends_at_full_rank_and_without_room_is_given_up) {
    const std::vector<double> noise = random_numbers(50 * 40);
    const Function f = [&](std::int64_t i, std::int64_t j) { return noise[i * 40 + j]; };
    compare(50, 40, f, from_last());
    EXPECT_EQ(result(50, 40, f, 40).ending, gpu::Ending::full_rank);
    EXPECT_EQ(result(50, 40, f, 39).ending, gpu::Ending::given_up);
    EXPECT_EQ(result(50, 40, smooth, 2).ending, gpu::Ending::given_up);
    EXPECT_EQ(result(50, 40, smooth, 20).ending, gpu::Ending::converged);
}

TEST_P(AcaTeam, an_entry_that_is_no_number_ends_the_leaf) {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
        const Function row = [=](std::int64_t i, std::int64_t j) { return i == 39 && j == 7 ? bad : smooth(i, j); };
        const Function column = [=](std::int64_t i, std::int64_t j) { return i == 5 && j == 0 ? bad : smooth(i, j); };
        EXPECT_EQ(result(40, 60, row, 40).ending, gpu::Ending::not_finite);
        EXPECT_EQ(result(40, 60, column, 40).ending, gpu::Ending::not_finite);
    }
}

// If threads saw different results, they would wait for each other forever.
TEST_P(AcaTeam, sums_that_overflow_end_the_leaf) {
    const std::vector<double> noise = random_numbers(40 * 60);
    const Function f = [&](std::int64_t i, std::int64_t j) { return 1.7e308 * noise[i * 60 + j]; };
    EXPECT_EQ(result(40, 60, f, 40).ending, gpu::Ending::not_finite);
}

TEST_P(AcaTeam, the_size_of_entries_does_not_matter) {
    for (const double unit : {1e-100, 1e100, -1.0}) {
        compare(40, 60, [=](std::int64_t i, std::int64_t j) { return unit * smooth(i, j); }, from_last());
    }
}

INSTANTIATE_TEST_SUITE_P(Teams, AcaTeam, testing::Values(false, true),
                         [](const auto& chosen) { return chosen.param ? "eight_threads" : "one_thread"; });

}  // namespace
}  // namespace penstock::hmatrix
