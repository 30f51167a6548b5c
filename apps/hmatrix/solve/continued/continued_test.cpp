// Solves that are killed and continued: they give the same numbers as a solve that was not killed, or say why they
// cannot.
#include "hmatrix/solve/continued/continued.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string>

#include "context/test_files.hpp"
#include "hmatrix/solve/continued/checkpoint_rig.hpp"
#include "hmatrix/solve/continued/product_file.hpp"
#include "hmatrix/solve/dense_rig.hpp"
#include "os/new_file/killing_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

using Vector = std::vector<double>;
constexpr std::int64_t kUnknowns = 120;
constexpr int kColumns = 2;

Dense rough_copy(const Dense& matrix) {
    Dense made = matrix;
    for (std::size_t i = 0; i < made.values.size(); ++i) made.values[i] *= 1 + 0.02 * static_cast<double>(i % 5);
    return made;
}

Dense diagonal() {
    Dense made(kUnknowns);
    for (std::int64_t i = 0; i < kUnknowns; ++i) made.at(i, i) = 1 + 0.1 * static_cast<double>(i % 7);
    return made;
}

// Vectors that claim not to be repeatable, as on a GPU, which adds in any order.
class Unrepeatable final : public VectorSpace {
  public:
    explicit Unrepeatable(VectorSpace& by) : by_(by) {}
    std::int64_t size() const noexcept override { return by_.size(); }
    bool repeatable() const noexcept override { return false; }
    std::shared_ptr<double> allocate(std::int64_t count) override { return by_.allocate(count); }
    void upload(std::span<const double> host, double* to) override { by_.upload(host, to); }
    void download(const double* from, std::span<double> host) override { by_.download(from, host); }
    void copy(const double* from, double* to) override { by_.copy(from, to); }
    void scale(double factor, double* x) override { by_.scale(factor, x); }
    void add(double factor, const double* x, double* y) override { by_.add(factor, x, y); }
    double dot(const double* x, const double* y) override { return by_.dot(x, y); }
    void dots(const double* basis, const double* x, std::span<double> result) override { by_.dots(basis, x, result); }
    void combine(const double* basis, std::span<const double> factors, double* y) override {
        by_.combine(basis, factors, y);
    }

  private:
    VectorSpace& by_;
};

struct Found {
    ContinuedResult continued;
    Vector x;
    std::int64_t swept = 0;          // products with the matrix, including checks
    std::vector<std::int64_t> told;  // iterations that were reported
};

// One problem with everything that the methods use.
struct Solve {
    Dense matrix = single_layer(kUnknowns), rough = rough_copy(matrix), scaling = diagonal();
    Vector b = random_numbers(kColumns * kUnknowns, 3);
    Problem problem{.unknowns = kUnknowns, .columns = kColumns, .right_hand_side = checksum_of(b), .matrix = 12};
    double noise = 0;  // of the surrogate's images; different on every run
    bool repeatable = true;

    Found run(const std::string& file, SolveOptions options, std::int64_t last_sweep = 1000,
              os::System* system = nullptr) const {
        Found found{.continued = {}, .x = Vector(b.size()), .swept = 0, .told = {}};
        DenseOperator sweeps(matrix), surrogate(rough), preconditioner(scaling);
        sweeps.after_apply = [&](std::int64_t applies, double*) {
            if (applies == last_sweep) ::kill(::getpid(), SIGKILL);
        };
        Vector noises = random_numbers(kUnknowns, static_cast<unsigned>(last_sweep));
        surrogate.after_apply = [&](std::int64_t, double* image) {
            for (std::size_t i = 0; i < noises.size(); ++i) image[i] *= 1 + noise * noises[i];
        };
        const auto exact = make_host_vectors(kUnknowns);
        Unrepeatable inexact(*exact);
        VectorSpace* const space = repeatable ? exact.get() : &inexact;
        const auto solve_it = [&](std::span<double> x, const SolveOptions& how) {
            SolveOptions all = how;
            all.preconditioner = &preconditioner;
            if (all.method == Method::fgmres) all.surrogate = &surrogate;
            return solve(*space, {sweeps, b, x}, all);
        };
        const Context context = host_context(system);
        options.checkpoint_sweeps = 2;
        options.progress = [&](const Progress& at) {
            found.told.push_back(at.iteration);
            return true;
        };
        found.continued = solve_continued({context, file, problem}, options, found.x, solve_it);
        found.swept = sweeps.applies();
        return found;
    }
};

class ContinuedSolve : public testing::Test {
  protected:
    void kill_at_sweep(std::int64_t sweep, const SolveOptions& options) {
        EXPECT_FALSE(os::child_ends([&] { solve_.run(file_, options, sweep); })) << "it should have been killed";
    }
    Found whole(const SolveOptions& options) { return solve_.run(directory_.file("other"), options); }
    void expect_the_same(const Found& found, const Found& wanted) {
        EXPECT_EQ(found.x, wanted.x) << "bit by bit";
        EXPECT_EQ(found.continued.result.history, wanted.continued.result.history);
        EXPECT_EQ(found.continued.result.iterations, wanted.continued.result.iterations);
        EXPECT_EQ(found.continued.result.inner_iterations, wanted.continued.result.inner_iterations);
        EXPECT_EQ(found.continued.result.sweeps, wanted.continued.result.sweeps);
        EXPECT_EQ(found.continued.result.relative_residual, wanted.continued.result.relative_residual);
    }

    Solve solve_;
    test::TempDirectory directory_;
    std::string file_ = directory_.file("state");
    std::string products_ = directory_.file("state.products");
};

constexpr std::array kAll{Method::fgmres, Method::gmres, Method::bicgstab, Method::gcr, Method::idr};

TEST_F(ContinuedSolve, killed_twice_every_method_comes_to_the_same_bits_and_repeats_no_sweep) {
    for (const Method method : kAll) {
        SCOPED_TRACE(to_string(method));
        const SolveOptions options{.method = method, .tolerance = 1e-9};
        const Found wanted = whole(options);
        ASSERT_TRUE(wanted.continued.result.converged);
        ASSERT_EQ(wanted.continued.how, Continued::no);
        ASSERT_GE(wanted.continued.result.sweeps, 6);
        kill_at_sweep(4, options);  // after the checkpoint at two sweeps
        kill_at_sweep(3, options);  // after the checkpoint at four sweeps
        const Found found = solve_.run(file_, options);
        EXPECT_EQ(found.continued.how, Continued::repeated) << found.continued.restarted_because;
        EXPECT_EQ(found.continued.sweeps_before, 4);
        expect_the_same(found, wanted);
        EXPECT_EQ(found.swept, wanted.swept - found.continued.sweeps_before);
        const auto told = static_cast<std::ptrdiff_t>(found.told.size());
        ASSERT_LT(found.told.size(), wanted.told.size()) << "what is repeated is not told again";
        EXPECT_TRUE(std::equal(found.told.begin(), found.told.end(), wanted.told.end() - told));
        std::filesystem::remove(file_);
        std::filesystem::remove(products_);
        for (const char* name : {"other", "other.products"}) std::filesystem::remove(directory_.file(name));
    }
}

TEST_F(ContinuedSolve, without_its_products_it_begins_anew_and_says_so) {
    const SolveOptions options{.method = Method::gmres, .tolerance = 1e-9};
    const Found wanted = whole(options);
    const auto restarts = [&](const std::string& because) {
        const Found found = solve_.run(file_, options);
        EXPECT_EQ(found.continued.how, Continued::restarted);
        EXPECT_NE(found.continued.restarted_because.find(because), std::string::npos)
            << found.continued.restarted_because;
        EXPECT_TRUE(found.continued.result.converged);
        EXPECT_EQ(found.continued.sweeps_before, 6);
        EXPECT_NE(found.x, wanted.x) << "the control of the test above: the same bits are no matter of course";
        for (std::size_t i = 0; i < wanted.x.size(); ++i) ASSERT_NEAR(found.x[i], wanted.x[i], 1e-6);
    };
    const auto killed = [&](const std::function<void()>& damage) {
        std::filesystem::remove(file_);
        std::filesystem::remove(products_);
        kill_at_sweep(7, options);
        damage();
    };
    killed([&] { std::filesystem::remove(products_); });
    restarts("state.products");
    killed([&] { std::filesystem::resize_file(products_, 63); });
    restarts("shorter than its header");
    killed([&] { std::filesystem::resize_file(products_, std::filesystem::file_size(products_) - 1); });
    restarts("shorter than its checkpoint says");
    const auto flipped = [&](std::size_t at) {
        return [this, at] {
            std::string bytes = bytes_of(products_);
            bytes.at(at) ^= 4;
            replace_bytes(products_, bytes);
        };
    };
    killed(flipped(40));
    restarts("its header is corrupted");
    killed(flipped(100));
    restarts("its first guess is corrupted");
    const std::size_t first = 64 + kColumns * kUnknowns * sizeof(double);
    killed(flipped(first + 16));  // the field that counts the numbers of operands
    restarts("with other right-hand sides");
    killed(flipped(first + 200));
    restarts("the product at byte " + std::to_string(first) + " is corrupted");
    const std::size_t entry = 24 + kColumns * (kMarks + kUnknowns) * sizeof(double) + 8;
    killed(flipped(first + 3 * entry + 200));
    restarts("the product at byte " + std::to_string(first + 3 * entry) + " is corrupted");
}

TEST_F(ContinuedSolve, with_other_options_or_another_method_it_begins_anew_from_the_iterate) {
    const SolveOptions options{.method = Method::gmres, .tolerance = 1e-9};
    SolveOptions shorter = options, other = options;
    shorter.restart = 3;
    other.method = Method::gcr;
    for (const auto& [how, because] : {std::pair(shorter, "other steps"), std::pair(other, "is of gmres")}) {
        kill_at_sweep(7, options);
        const double reached = read_checkpoint(host_context(), file_, solve_.problem).progress.relative_residual;
        const Found found = solve_.run(file_, how);
        EXPECT_EQ(found.continued.how, Continued::restarted);
        EXPECT_NE(found.continued.restarted_because.find(because), std::string::npos)
            << found.continued.restarted_because;
        EXPECT_TRUE(found.continued.result.converged);
        ASSERT_FALSE(found.continued.result.history.empty());
        EXPECT_LE(found.continued.result.history.front(), 1.01 * reached) << "nothing that was reached is lost";
        EXPECT_GT(found.continued.result.iterations, 6);
        std::filesystem::remove(file_);
        std::filesystem::remove(products_);
    }
    // Another tolerance changes where the solve ends, but not its steps.
    kill_at_sweep(7, options);
    SolveOptions looser = options;
    looser.tolerance = 1e-7;
    const Found found = solve_.run(file_, looser);
    EXPECT_EQ(found.continued.how, Continued::repeated) << found.continued.restarted_because;
    EXPECT_EQ(found.x, solve_.run(directory_.file("third"), looser).x);
}

TEST_F(ContinuedSolve, killed_at_any_call_that_changes_a_file_it_still_goes_on_to_the_same_bits) {
    const SolveOptions options{.method = Method::bicgstab, .tolerance = 1e-2};
    const Found wanted = whole(options);
    int repeated = 0, begun = 0;
    for (int calls = 0;; ++calls) {
        ASSERT_LT(calls, 300);
        std::filesystem::remove(file_);
        std::filesystem::remove(products_);
        const bool ended = os::child_ends([&] {
            os::KillingSystem system(calls);
            solve_.run(file_, options, 1000, &system);
        });
        if (ended) break;
        const Found found = solve_.run(file_, options);
        ASSERT_NE(found.continued.how, Continued::restarted) << calls << ": " << found.continued.restarted_because;
        ++(found.continued.how == Continued::repeated ? repeated : begun);
        expect_the_same(found, wanted);
    }
    EXPECT_GE(begun, 8) << "killed before the first checkpoint was whole";
    EXPECT_GE(repeated, 8);
}

// A disk that is full from the n-th write on.
class FullSystem final : public os::System {
  public:
    explicit FullSystem(int writes) : left_(writes) {}
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (left_-- > 0) return System::pwrite(fd, memory, bytes, offset);
        errno = ENOSPC;
        return -1;
    }

  private:
    int left_;
};

TEST_F(ContinuedSolve, a_full_disk_ends_it_and_with_room_it_goes_on_to_the_same_bits) {
    const SolveOptions options{.method = Method::bicgstab, .tolerance = 1e-2};
    const Found wanted = whole(options);
    int refused = 0, repeated = 0;
    for (int writes = 0;; ++writes) {
        ASSERT_LT(writes, 100);
        std::filesystem::remove(file_);
        std::filesystem::remove(products_);
        FullSystem system(writes);
        try {
            solve_.run(file_, options, 1000, &system);
            break;
        } catch (const Error& error) {
            ASSERT_EQ(error.code(), ErrorCode::no_space) << error.what();
            ++refused;
        }
        const Found found = solve_.run(file_, options);
        ASSERT_NE(found.continued.how, Continued::restarted) << found.continued.restarted_because;
        repeated += found.continued.how == Continued::repeated;
        expect_the_same(found, wanted);
    }
    EXPECT_GE(refused, 6);
    EXPECT_GE(repeated, 3);
}

TEST_F(ContinuedSolve, a_file_of_others_that_has_the_name_of_the_products_is_not_written_over) {
    replace_bytes(products_, "another's own");
    try {
        solve_.run(file_, {.method = Method::gmres, .tolerance = 1e-9});
        ADD_FAILURE() << "it was written over";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("this name is for the products"), std::string::npos) << error.what();
        EXPECT_FALSE(std::filesystem::exists(file_)) << "it is told before the first sweep";
    }
    EXPECT_EQ(bytes_of(products_), "another's own");
}

TEST_F(ContinuedSolve, directions_that_differ_by_what_a_gpu_makes_of_rounding_are_the_same) {
    const SolveOptions options{.method = Method::fgmres, .tolerance = 1e-9};
    const Found wanted = whole(options);
    for (const double noise : {1e-6, 1e-4}) {
        solve_.noise = noise;
        solve_.repeatable = false;
        kill_at_sweep(5, options);
        const Found found = solve_.run(file_, options);
        EXPECT_EQ(found.continued.how, Continued::repeated) << found.continued.restarted_because;
        EXPECT_EQ(found.continued.sweeps_before, 4);
        EXPECT_EQ(found.continued.result.sweeps, wanted.continued.result.sweeps) << "their images are exact";
        for (std::size_t i = 0; i < found.x.size(); ++i) EXPECT_NEAR(found.x[i], wanted.x[i], 1e-6);
        solve_.repeatable = true;
        std::filesystem::remove(file_);
        kill_at_sweep(5, options);
        EXPECT_EQ(solve_.run(file_, options).continued.how, Continued::restarted) << "what is exact is held to it";
        std::filesystem::remove(file_);
    }
}

TEST(ProductKey, tells_operands_apart_and_forgives_rounding) {
    const Vector x = random_numbers(1000, 5);
    const ProductKey key = key_of(x, 2, 1e-3);
    EXPECT_TRUE(same(key, key_of(x, 2, 1e-3), kSameOnHost));
    EXPECT_FALSE(same(key, key_of(x, 1, 1e-3), kSameOnHost));
    EXPECT_FALSE(same(key, key_of(x, 2, 2e-3), kSameOnHost));
    for (const std::size_t at : {0, 499, 500, 999}) {
        Vector other = x;
        other[at] *= 1 + 1e-12;
        EXPECT_TRUE(same(key, key_of(other, 2, 1e-3), kSameOnHost));
        other[at] += 1e-6;
        EXPECT_FALSE(same(key, key_of(other, 2, 1e-3), kSameOnHost)) << at;
    }
    Vector swapped = x;
    std::swap(swapped[3], swapped[4]);  // keeps the norm
    EXPECT_FALSE(same(key, key_of(swapped, 2, 1e-3), kSameOnHost));
    const Vector nothing(1000);
    EXPECT_TRUE(same(key_of(nothing, 2, 0), key_of(nothing, 2, 0), kSameOnHost));
    EXPECT_FALSE(same(key_of(nothing, 2, 0), key_of(x, 2, 0), kSameOnHost));
}

}  // namespace
}  // namespace penstock::hmatrix
