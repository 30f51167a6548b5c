// Assembly: the file against the matrix, the sampled error, batches, and options that are refused.
#include "hmatrix/assemble/assemble.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "context/test_files.hpp"
#include "hmatrix/assemble/small_problem_rig.hpp"
#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/host_product.hpp"
#include "hmatrix/multiply/source/cached_source.hpp"
#include "hmatrix/multiply/stored_matrix.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

class Assembly : public testing::Test {
  protected:
    Assembled make(const SmallProblem& given, const AssembleOptions& options) {
        return assemble(context_, workers_, given.problem(), name_, options);
    }
    // The product of the file with x, in the numbering of the points.
    std::vector<double> product(const std::vector<double>& x) {
        const MatrixFile file = MatrixFile::open(context_, workers_, name_);
        CachedSource source(context_, workers_, file, {});
        HostProduct matrix_product(file, workers_);
        StoredMatrix matrix(file, source, matrix_product, {});
        const auto& order = file.tables().order;
        std::vector<double> from(x.size()), to(x.size()), y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) from[i] = x[order[i]];
        matrix.apply(from.data(), to.data(), 1, 0);
        for (std::size_t i = 0; i < x.size(); ++i) y[order[i]] = to[i];
        return y;
    }
    test::TempDirectory directory_;
    std::string name_ = directory_.file("a.hmat");
    Context context_ = host_context();
    Workers workers_{3};
};

TEST_F(Assembly, products_are_within_eps_and_the_sampled_error_says_so) {
    const SmallProblem given(600);
    const std::vector<double> x = random_vector(600, 1), right = given.times(x);
    for (const Encoding encoding : {Encoding::tiers, Encoding::fp64}) {
        for (const double eps : {0.3, 1e-2, 1e-4, 1e-6, 1e-8}) {
            AssembleOptions options;
            options.eps = eps;
            options.encoding = encoding;
            options.aca_plus = eps == 1e-4;
            const Assembled made = make(given, options);
            EXPECT_LE(difference(product(x), right), eps);
            EXPECT_LE(made.head.sampled_error, eps);
            EXPECT_GE(made.head.sampled_error, 0);
            EXPECT_EQ(made.head.unknowns, 600);
            EXPECT_GT(made.head.low_rank_leaves, 0);
        }
    }
}

TEST_F(Assembly, the_file_is_the_same_for_any_number_of_workers) {
    const SmallProblem given(500);
    std::vector<unsigned char> first;
    for (const int threads : {1, 2, 5, 5}) {
        Workers workers(threads);
        AssembleOptions options;
        options.batches = 4;
        assemble(context_, workers, given.problem(), name_, options);
        if (first.empty()) first = test::read_file(name_);
        EXPECT_TRUE(test::read_file(name_) == first) << threads;
    }
}

TEST_F(Assembly, as_many_batches_as_asked_hold_all_leaves) {
    const SmallProblem given(700);
    for (const std::int64_t batches : {1, 2, 10, 50, 153, 1000000}) {
        AssembleOptions options;
        options.batches = batches;
        options.encoding = Encoding::fp64;
        const Assembled made = make(given, options);
        EXPECT_EQ(made.head.batches, std::min(batches, made.head.leaves));
        const MatrixFile file = MatrixFile::open(context_, workers_, name_);
        std::int64_t leaves = 0, bytes = 0;
        for (const BatchRecord& batch : file.tables().batches) {
            leaves += batch.leaves;
            bytes += batch.bytes;
        }
        EXPECT_EQ(leaves, made.head.leaves);
        EXPECT_TRUE(batches > 10 || file.largest_batch() < 2 * bytes / batches) << "about equal bytes each";
    }
    AssembleOptions options;
    options.batch_bytes = 100 * kKiB;
    const Assembled made = make(given, options);
    EXPECT_NEAR(static_cast<double>(made.head.batches), static_cast<double>(made.head.fp64_bytes) / 102400.0,
                0.3 * static_cast<double>(made.head.batches));
}

TEST_F(Assembly, progress_counts_leaves_to_the_last_and_can_stop_it) {
    const SmallProblem given(400);
    AssembleOptions options;
    options.batches = 5;
    std::vector<AssembleProgress> told;
    options.progress = [&](const AssembleProgress& at) {
        told.push_back(at);
        return true;
    };
    const Assembled made = make(given, options);
    ASSERT_EQ(told.size(), 5u);
    EXPECT_EQ(told.back().leaves_done, made.head.leaves);
    EXPECT_EQ(told.back().leaves, made.head.leaves);
    EXPECT_GT(told.back().bytes_written, told.front().bytes_written);

    const auto before = test::read_file(name_);
    options.progress = [](const AssembleProgress&) { return false; };
    try {
        make(given, options);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
    EXPECT_TRUE(test::read_file(name_) == before) << "the file that was there stays";
    EXPECT_EQ(directory_.entries(), 1u);
}

std::string refusal(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
        return error.info().cause;
    }
    return "nothing was refused";
}

TEST_F(Assembly, options_that_make_no_sense_are_refused_by_name) {
    const SmallProblem given(60);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto cause = [&](const std::function<void(AssembleOptions&)>& change) {
        AssembleOptions options;
        change(options);
        return refusal([&] { make(given, options); });
    };
    EXPECT_EQ(cause([](AssembleOptions& o) { o.eps = 1e-13; }), "eps 1e-13 is not between 1e-12 and 0.5");
    EXPECT_EQ(cause([](AssembleOptions& o) { o.eps = 0.7; }), "eps 0.7 is not between 1e-12 and 0.5");
    EXPECT_EQ(cause([&](AssembleOptions& o) { o.eps = nan; }), "eps nan is not between 1e-12 and 0.5");
    EXPECT_NE(cause([](AssembleOptions& o) { o.eta = -1; }).find("eta -1"), std::string::npos);
    EXPECT_NE(cause([](AssembleOptions& o) { o.leaf_size = 0; }).find("leaf size 0"), std::string::npos);
    EXPECT_NE(cause([](AssembleOptions& o) { o.batch_bytes = 0; }).find("0 bytes"), std::string::npos);
    EXPECT_NE(cause([](AssembleOptions& o) { o.batches = -2; }).find("-2 batches"), std::string::npos);
    EXPECT_NE(cause([](AssembleOptions& o) { o.accuracies = {0.1, 0.1}; }).find("must fall"), std::string::npos);
    EXPECT_NE(cause([](AssembleOptions& o) { o.accuracies = {1.5}; }).find("must fall"), std::string::npos);
    EXPECT_NE(cause([&](AssembleOptions& o) { o.accuracies = {nan}; }).find("must fall"), std::string::npos);
    EXPECT_NE(cause([](AssembleOptions& o) { o.accuracies.assign(7, 0.1); }).find("6 tiers"), std::string::npos);
    EXPECT_NE(cause([](AssembleOptions& o) { o.gpu_bytes = 0; }).find("hold nothing"), std::string::npos);
    EXPECT_NE(refusal([&] { assemble(context_, workers_, {}, name_, {}); }).find("no points"), std::string::npos);
    EXPECT_EQ(directory_.entries(), 0u);
}

TEST_F(Assembly, a_gpu_that_is_not_there_is_refused_and_auto_takes_the_host) {
    const SmallProblem given(60);
    for (const AssembleOn on : {AssembleOn::automatic, AssembleOn::host}) {
        AssembleOptions options;
        options.on = on;
        const Assembled made = make(given, options);
        EXPECT_EQ(made.on, "host");
        EXPECT_EQ(made.left_to_host, 0);
    }
    std::filesystem::remove(name_);
    AssembleOptions options;
    options.on = AssembleOn::gpu;
    try {
        make(given, options);
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_EQ(error.info().cause, "the device 'host' is not a GPU");
        EXPECT_FALSE(error.info().advice.empty());
    }
    EXPECT_EQ(directory_.entries(), 0u);
}

TEST_F(Assembly, units_at_the_end_of_single_precision_are_refused_not_rounded_away) {
    for (const double unit : {1e-24, 1e-300}) {
        const SmallProblem given(100, unit);
        EXPECT_NE(refusal([&] { make(given, {}); }).find("too small for tiers"), std::string::npos);
    }
    EXPECT_THROW(make(SmallProblem(100, 1e32), {}), Error);
    for (const double unit : {1e-18, 1e27}) {
        const SmallProblem given(200, unit);
        EXPECT_LE(make(given, {}).head.sampled_error, 1e-4) << unit;
    }
    AssembleOptions doubles;
    doubles.encoding = Encoding::fp64;
    EXPECT_LE(make(SmallProblem(200, 1e-100), doubles).head.sampled_error, 1e-4);
}

// Entries that jump inside approximated blocks, so rarely that the check of each block misses them.
class Jumping final : public Entries {
  public:
    explicit Jumping(const SmallProblem& smooth) : smooth_(smooth) {}
    void row(std::int64_t row, std::span<const std::int64_t> columns, double* out) const override {
        for (std::size_t i = 0; i < columns.size(); ++i) out[i] = entry(row, columns[i]);
    }
    void column(std::span<const std::int64_t> rows, std::int64_t column, double* out) const override {
        for (std::size_t i = 0; i < rows.size(); ++i) out[i] = entry(rows[i], column);
    }

  private:
    double entry(std::int64_t i, std::int64_t j) const {
        return smooth_.entry(i, j) + ((i * 31 + j * 17) % 97 == 0 ? 0.4 : 0.0);
    }
    const SmallProblem& smooth_;
};

TEST_F(Assembly, an_approximation_that_fails_is_an_error_and_no_file) {
    const SmallProblem smooth(600);
    const Jumping jumping(smooth);
    AssembleOptions options;
    options.eps = 1e-4;
    options.check_rows = 600;
    const MatrixProblem problem{smooth.problem().points, &jumping};
    try {
        const Assembled made = assemble(context_, workers_, problem, name_, options);
        EXPECT_LE(made.head.sampled_error, 1e-3) << "a wrong answer";
        EXPECT_GT(made.full_rank + made.repairs, 0);
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("lower eta"), std::string::npos) << error.what();
        EXPECT_EQ(directory_.entries(), 0u);
    }
}

TEST_F(Assembly, one_unknown_and_points_that_coincide_are_matrices_too) {
    const SmallProblem one(1);
    make(one, {});
    EXPECT_NEAR(product({2})[0], 60, 1e-3);
    const std::vector<Point> heap(40, Point{1, 2, 3});
    const FunctorEntries entries([](std::int64_t i, std::int64_t j) { return i == j ? 2.0 : 1.0; });
    assemble(context_, workers_, {heap, &entries}, name_, {});
    EXPECT_NEAR(product(std::vector<double>(40, 1.0))[7], 41, 1e-3);
}

TEST_F(Assembly, a_matrix_of_zeros_is_stored_and_multiplied) {
    const SmallProblem places(300);
    const FunctorEntries entries([](std::int64_t, std::int64_t) { return 0.0; });
    for (const Encoding encoding : {Encoding::tiers, Encoding::fp64}) {
        AssembleOptions options;
        options.encoding = encoding;
        assemble(context_, workers_, {places.problem().points, &entries}, name_, options);
        for (const double value : product(random_vector(300, 2))) ASSERT_EQ(value, 0);
    }
}

TEST_F(Assembly, an_entry_that_is_no_number_is_named_wherever_it_lies) {
    const SmallProblem places(300);
    for (const auto& [row, column] : {std::pair<std::int64_t, std::int64_t>{7, 7}, {3, 250}}) {
        const FunctorEntries entries([row = row, column = column](std::int64_t i, std::int64_t j) {
            return i == row && j == column ? std::numeric_limits<double>::quiet_NaN() : 1.0 + (i == j ? 1 : 0);
        });
        AssembleOptions options;
        options.eta = 1e-9;  // makes all leaves dense
        const std::string cause = refusal([&] {
            assemble(context_, workers_, {places.problem().points, &entries}, name_, options);
        });
        EXPECT_EQ(cause, "the entry in row " + std::to_string(row) + ", column " + std::to_string(column) +
                             " is not a finite number");
        EXPECT_EQ(directory_.entries(), 0u);
    }
}

}  // namespace
}  // namespace penstock::hmatrix
