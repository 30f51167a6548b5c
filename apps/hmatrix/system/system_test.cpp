// A stored matrix as a whole: surface charge problems compared with dense matrices, in core and out of core, and their
// solutions.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/kernel/problem.hpp"
#include "hmatrix/multiply/stored_rig.hpp"
#include "hmatrix/system/stored_system.hpp"
#include "penstock/error.hpp"
#include "support/sanitized.hpp"

namespace penstock::hmatrix {
namespace {

// A mesh's problem, its dense matrix, and files of it.
class Charges {
  public:
    explicit Charges(const Mesh& mesh) : problem_(mesh), n_(problem_.unknowns()), entries_(problem_.collocation()) {}

    void build(Encoding encoding, double eps, std::int64_t batches = 8) {
        AssembleOptions options;
        options.encoding = encoding;
        options.eps = eps;
        options.batches = batches;
        Workers workers(2);
        head = assemble(context, workers, {problem_.centroids(), &entries_}, name, options).head;
    }
    std::vector<double> times(const std::vector<double>& x) {
        if (dense_.empty()) {
            std::vector<std::int64_t> all(n_);
            std::iota(all.begin(), all.end(), std::int64_t{0});
            dense_.resize(n_ * n_);
            for (std::int64_t i = 0; i < n_; ++i) entries_.row(i, all, dense_.data() + i * n_);
        }
        std::vector<double> y(n_);
        for (std::int64_t i = 0; i < n_; ++i) {
            y[i] = std::inner_product(x.begin(), x.end(), dense_.begin() + i * n_, 0.0);
        }
        return y;
    }
    double capacitance(const std::vector<double>& density) const {
        return problem_.capacitance_over_4pi_eps0(density);
    }
    std::int64_t n() const { return n_; }

    test::TempDirectory directory;
    std::string name = directory.file("a.hmat");
    Context context = host_context();
    FileHeader head{};

  private:
    LaplaceProblem problem_;
    std::int64_t n_;
    FunctorEntries<LaplaceCollocation> entries_;
    std::vector<double> dense_;
};

SystemOptions with_cache(std::int64_t bytes, int pinned_tiers = -1) {
    SystemOptions options;
    options.cache.cache_bytes = bytes;
    options.cache.pinned_tiers = pinned_tiers;
    options.workers = 2;
    return options;
}

SystemSolve by(Method method, double tolerance) {
    SystemSolve how;
    how.options.method = method;
    how.options.tolerance = tolerance;
    return how;
}

std::vector<double> product(StoredSystem& system, const std::vector<double>& x, double accuracy = 0) {
    std::vector<double> y(x.size());
    system.multiply(x, y, accuracy);
    return y;
}

constexpr int kPart = test::kSanitized ? 4 : 1;  // how many parts there are of a mesh, one of which is solved

TEST(System, products_are_within_eps_of_the_dense_matrix) {
    for (const Mesh& mesh : {sphere(1280 / kPart), cube(test::kSanitized ? 432 : 768)}) {
        Charges charges(mesh);
        const std::vector<double> ones(charges.n(), 1.0), noise = random_vector(charges.n(), 1);
        for (const Encoding encoding : {Encoding::tiers, Encoding::fp64}) {
            for (const double eps : {1e-3, 1e-5, 1e-7}) {
                charges.build(encoding, eps);
                StoredSystem system(charges.context, charges.name, with_cache(0));
                for (const auto& x : {ones, noise}) {
                    EXPECT_LE(difference(product(system, x), charges.times(x)), eps)
                        << charges.n() << " unknowns, " << (encoding == Encoding::tiers ? "tiers" : "fp64");
                }
                // A product of low accuracy meets that accuracy, and is not needlessly better.
                if (encoding == Encoding::fp64 || eps > 1e-4) continue;
                const double coarse = difference(product(system, ones, 1e-2), charges.times(ones));
                EXPECT_LE(coarse, 1e-2);
                EXPECT_GT(coarse, 1e-5);
            }
        }
    }
}

TEST(System, solutions_give_the_capacitance_by_every_method) {
    Charges charges(sphere(1280 / kPart));
    const double capacitance = test::kSanitized ? 0.9870 : 0.9967;  // of just this mesh, see capacitance_test.cpp
    const std::vector<double> volt(charges.n(), 1.0);
    for (const Encoding encoding : {Encoding::tiers, Encoding::fp64}) {
        charges.build(encoding, 1e-6);
        StoredSystem system(charges.context, charges.name, with_cache(0));
        for (const Method method : {Method::fgmres, Method::gmres, Method::bicgstab, Method::gcr, Method::idr}) {
            std::vector<double> x(charges.n());
            const SolveResult result = system.solve(volt, x, by(method, 1e-5));
            EXPECT_TRUE(result.converged) << to_string(method) << ": " << result.stopped_by;
            EXPECT_NEAR(charges.capacitance(x), capacitance, 2e-4) << to_string(method);
            EXPECT_LE(difference(charges.times(x), volt), 2e-5) << "by the dense matrix, too";
        }
    }
}

TEST(System, mirror_spheres_carry_equal_and_opposite_charge) {
    const Mesh mesh = mirrored_spheres(1280 / kPart);
    Charges charges(mesh);
    charges.build(Encoding::tiers, 1e-8);
    StoredSystem system(charges.context, charges.name, with_cache(0));
    std::vector<double> x(charges.n());
    ASSERT_TRUE(system.solve(mesh.values, x, by(Method::fgmres, 1e-7)).converged);
    const std::vector<double> areas_of_mesh = areas(mesh);
    double sum = 0, size = 0;
    for (std::int64_t i = 0; i < charges.n(); ++i) {
        sum += x[i] * areas_of_mesh[i];
        size += std::abs(x[i]) * areas_of_mesh[i];
    }
    EXPECT_LE(std::abs(sum), 1e-6 * size);
}

// With a cache of a third of the matrix or of two batches, batches come and go. The results must not change.
TEST(System, out_of_core_equals_in_core) {
    Charges charges(cube(768));
    const std::vector<double> b = random_vector(2 * charges.n(), 2);
    for (const Encoding encoding : {Encoding::tiers, Encoding::fp64}) {
        charges.build(encoding, 1e-5, 12);
        const int pinned = encoding == Encoding::tiers ? 1 : 0;
        StoredSystem whole(charges.context, charges.name, with_cache(0, pinned));
        std::vector<double> in_core(b.size());
        ASSERT_TRUE(whole.solve(b, in_core, by(Method::fgmres, 1e-4)).converged);
        const std::int64_t all = whole.file().prefix_bytes(whole.file().tiers());
        const std::int64_t least = whole.file().prefix_bytes(pinned) + 2 * whole.file().largest_batch() + 20 * 4096;
        for (const std::int64_t bytes : {all / 2, least}) {
            for (const bool zig_zag : {false, true}) {
                SystemOptions options = with_cache(bytes, pinned);
                options.zig_zag = zig_zag;
                StoredSystem small(charges.context, charges.name, options);
                EXPECT_LE(difference(product(small, b), product(whole, b)), 1e-14);
                std::vector<double> out_of_core(b.size());
                ASSERT_TRUE(small.solve(b, out_of_core, by(Method::fgmres, 1e-4)).converged);
                EXPECT_LE(difference(out_of_core, in_core), zig_zag ? 1e-10 : 0) << "zig-zag sums in another order";
                EXPECT_GT(small.counts().bytes_read, all) << "it did go through the cache";
            }
        }
    }
}

TEST(System, several_right_hand_sides_are_solved_in_the_users_numbering) {
    Charges charges(sphere(320));
    charges.build(Encoding::tiers, 1e-7);
    StoredSystem system(charges.context, charges.name, with_cache(0));
    const std::vector<double> right = random_vector(5 * charges.n(), 3);
    std::vector<double> b;
    for (int c = 0; c < 5; ++c) {
        const std::vector<double> column(right.begin() + c * charges.n(), right.begin() + (c + 1) * charges.n());
        const std::vector<double> image = charges.times(column);
        b.insert(b.end(), image.begin(), image.end());
    }
    std::vector<double> x(b.size());
    const SolveResult result = system.solve(b, x, by(Method::fgmres, 1e-6));
    ASSERT_TRUE(result.converged);
    EXPECT_EQ(result.residuals.size(), 5u);
    EXPECT_LE(difference(x, right), 1e-4);
    EXPECT_LE(result.sweeps, 12) << "one sweep serves all five";
}

TEST(System, a_solve_goes_on_from_its_checkpoint) {
    Charges charges(cube(192));
    charges.build(Encoding::fp64, 1e-8);
    StoredSystem system(charges.context, charges.name, with_cache(0));
    const std::vector<double> b = random_vector(charges.n(), 4);
    std::vector<double> at_once(charges.n()), kept, x(charges.n());
    SystemSolve how = by(Method::gmres, 1e-9);
    how.preconditioner = false;
    ASSERT_TRUE(system.solve(b, at_once, how).converged);
    std::int64_t iterations = 0, sweeps = 0;
    how.options.checkpoint_sweeps = 10;
    how.options.checkpoint = [&](std::span<const double> state, const Progress& at) {
        kept.assign(state.begin(), state.end());
        iterations = at.iteration;
        sweeps = at.sweeps;
    };
    how.options.progress = [](const Progress& at) { return at.iteration < 25; };
    EXPECT_FALSE(system.solve(b, x, how).converged);
    ASSERT_EQ(kept.size(), b.size());
    EXPECT_GT(iterations, 0);
    EXPECT_LT(difference(charges.times(kept), b), 1) << "the state is in the user's numbering";
    how.options.progress = {};
    how.options.iterations_before = iterations;
    how.options.sweeps_before = sweeps;
    const SolveResult result = system.solve(b, kept, how);
    EXPECT_TRUE(result.converged);
    EXPECT_GT(result.iterations, iterations);
    EXPECT_LE(difference(kept, at_once), 1e-7);
}

TEST(System, pinned_batches_of_doubles_have_a_preconditioner_too) {
    Charges charges(cube(768));
    charges.build(Encoding::fp64, 1e-4, 10);
    const std::vector<double> b = random_vector(charges.n(), 5);
    std::int64_t plain = 0;
    for (const std::int64_t pinned : {0, 1, 5, 10}) {
        SystemOptions options = with_cache(0, 0);
        options.cache.pinned_batches = pinned;
        options.cache.cache_bytes = charges.head.file_bytes * 2;
        StoredSystem system(charges.context, charges.name, options);
        SystemSolve how = by(Method::gmres, 1e-4);
        std::vector<double> x(charges.n()), y(charges.n());
        const SolveResult with = system.solve(b, x, how);
        how.preconditioner = false;
        const SolveResult without = system.solve(b, y, how);
        EXPECT_TRUE(with.converged && without.converged);
        EXPECT_LT(with.iterations, without.iterations);
        EXPECT_TRUE(plain == 0 || plain == with.iterations) << "whatever is pinned";
        plain = with.iterations;
    }
}

TEST(System, any_cache_that_holds_a_batch_will_do_and_smaller_ones_are_refused) {
    Charges charges(sphere(320));
    charges.build(Encoding::tiers, 1e-4, 5);
    const std::vector<double> b(charges.n(), 1.0);
    std::vector<double> first;
    int refused = 0, taken = 0;
    for (std::int64_t bytes = 4096; bytes < charges.head.file_bytes + 40960; bytes += 12288) {
        std::vector<double> x(charges.n());
        try {
            StoredSystem system(charges.context, charges.name, with_cache(bytes));
            EXPECT_TRUE(system.solve(b, x, by(Method::fgmres, 1e-3)).converged) << bytes;
            ++taken;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
            EXPECT_EQ(taken, 0) << "less was enough: " << error.what();
            ++refused;
        }
    }
    EXPECT_GT(refused, 0);
    EXPECT_GT(taken, 5);
}

TEST(System, vectors_of_other_lengths_are_refused_with_both_lengths) {
    Charges charges(sphere(80));
    charges.build(Encoding::tiers, 1e-3, 1);
    StoredSystem system(charges.context, charges.name, with_cache(0));
    const auto cause = [&](std::size_t given, std::size_t made, bool solve) {
        const std::vector<double> x(given, 1.0);
        std::vector<double> y(made);
        try {
            if (solve) {
                system.solve(x, y, by(Method::gmres, 1e-3));
            } else {
                system.multiply(x, y, 0);
            }
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
            return error.info().cause;
        }
        return std::string();
    };
    for (const bool solve : {false, true}) {
        EXPECT_EQ(cause(80, 80, solve), "");
        EXPECT_EQ(cause(81, 81, solve), "81 numbers are not columns of 80 unknowns");
        EXPECT_EQ(cause(0, 0, solve), "0 numbers are not columns of 80 unknowns");
        EXPECT_EQ(cause(80, 160, solve), "there is room for 160 numbers of the result, and 80 are needed");
    }
}

}  // namespace
}  // namespace penstock::hmatrix
