// Checkpoints: what a killed process leaves, the iterate as a first guess, and files that are refused.
//
// The tests kill child processes in the middle of a write, at each of its system calls in turn and at random times.
// Afterwards a complete checkpoint must exist, either the previous one or the new one.
#include "hmatrix/solve/continued/checkpoint.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <functional>
#include <string>

#include "context/test_files.hpp"
#include "hmatrix/solve/continued/checkpoint_rig.hpp"
#include "hmatrix/solve/dense_rig.hpp"
#include "os/new_file/killing_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kUnknowns = 120;

// A state whose numbers follow from `iteration`.
SolverState state_number(std::int64_t iteration, std::int64_t unknowns = 3000) {
    SolverState state;
    state.problem = {.unknowns = unknowns, .columns = 2, .right_hand_side = 99, .matrix = 7};
    state.method = Method::gmres;
    state.progress = {.iteration = iteration, .sweeps = 2 * iteration, .relative_residual = 1e-3};
    state.x.assign(static_cast<std::size_t>(2 * unknowns), static_cast<double>(iteration));
    return state;
}

std::string refusal(const Context& context, const std::string& file, const Problem& expected) {
    try {
        read_checkpoint(context, file, expected);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_EQ(error.info().file, file);
        return error.info().cause;
    }
    return "";
}

// The time when the file got its name, in nanoseconds.
std::int64_t named_at(const std::string& file) {
    struct stat found {};
    EXPECT_EQ(::stat(file.c_str(), &found), 0);
    return found.st_ctim.tv_sec * std::int64_t{1000000000} + found.st_ctim.tv_nsec;
}

class Checkpoint : public testing::Test {
  protected:
    test::TempDirectory directory_;
    std::string file_ = directory_.file("solve.checkpoint");
};

TEST_F(Checkpoint, comes_back_as_it_was) {
    const Context context = host_context();
    SolverState state = state_number(5);
    state.x = random_numbers(6000, 1);
    state.products = {.id = 77, .bytes = 5000};
    write_checkpoint(context, file_, state);
    const SolverState back = read_checkpoint(context, file_, state.problem);
    EXPECT_EQ(back.x, state.x);
    EXPECT_EQ(back.method, Method::gmres);
    EXPECT_EQ(back.progress.iteration, 5);
    EXPECT_EQ(back.progress.sweeps, 10);
    EXPECT_EQ(back.progress.relative_residual, 1e-3);
    EXPECT_EQ(back.products.id, 77u);
    EXPECT_EQ(back.products.bytes, 5000u);
    EXPECT_EQ(bytes_of(file_).size(), 96 + 6000 * sizeof(double));
    state.x.pop_back();
    EXPECT_THROW(write_checkpoint(context, file_, state), Error);
}

TEST_F(Checkpoint, a_process_killed_at_any_call_leaves_a_whole_one) {
    write_checkpoint(host_context(), file_, state_number(1));
    int kept = 0, calls = 0;
    for (bool ended = false; !ended; ++calls) {
        ASSERT_LT(calls, 50);
        ended = os::child_ends([&] {
            os::KillingSystem system(calls);
            write_checkpoint(host_context(&system), file_, state_number(2));
        });
        const SolverState found = read_checkpoint(host_context(), file_, state_number(1).problem);
        ASSERT_TRUE(found.progress.iteration == 1 || found.progress.iteration == 2);
        EXPECT_EQ(found.x, state_number(found.progress.iteration).x);
        if (found.progress.iteration == 1) ++kept;
    }
    EXPECT_GE(kept, 4) << "killed before the space, the bytes, their settling and the name";
    EXPECT_EQ(read_checkpoint(host_context(), file_, state_number(1).problem).progress.iteration, 2);
}

TEST_F(Checkpoint, a_process_killed_at_any_time_leaves_a_whole_one) {
    const std::int64_t unknowns = 100000;
    write_checkpoint(host_context(), file_, state_number(1, unknowns));
    for (int round = 0; round < 8; ++round) {
        const std::int64_t before = named_at(file_);
        const auto write_for_ever = [&] {
            const Context context = host_context();
            for (std::int64_t i = 1;; ++i) write_checkpoint(context, file_, state_number(i, unknowns));
        };
        const auto kill_it = [&](pid_t child) {
            while (named_at(file_) == before) ::usleep(100);  // until the child has written its first checkpoint
            ::usleep(static_cast<useconds_t>(717 * round));
            ::kill(child, SIGKILL);
        };
        EXPECT_FALSE(os::child_ends(write_for_ever, kill_it));
        const SolverState found = read_checkpoint(host_context(), file_, state_number(1, unknowns).problem);
        EXPECT_EQ(found.x, state_number(found.progress.iteration, unknowns).x);
    }
}

struct Solve {
    Dense matrix = single_layer(kUnknowns);
    std::vector<double> b = random_numbers(2 * kUnknowns, 3);
    Problem problem{.unknowns = kUnknowns, .columns = 2, .right_hand_side = checksum_of(b), .matrix = 12};

    SolveResult run(std::vector<double>& x, const SolveOptions& options) const {
        const auto space = make_host_vectors(kUnknowns);
        DenseOperator sweeps(matrix);
        return solve(*space, {sweeps, b, x}, options);
    }
    // Writes a checkpoint every second sweep. The process is killed while it writes the third.
    void run_until_killed(const std::string& file, SolveOptions options) const {
        options.checkpoint_sweeps = 2;
        int made = 0;
        options.checkpoint = [&](std::span<const double> x, const Progress& progress) {
            os::KillingSystem system(++made < 3 ? 1000 : 2);
            write_checkpoint(host_context(&system), file,
                             {problem, options.method, progress, std::vector<double>(x.begin(), x.end()), {}});
        };
        std::vector<double> x(b.size());
        run(x, options);
    }
};

// Continues without a log of products.
void begin_anew(const SolverState& state, SolveOptions& options) {
    options.iterations_before = state.progress.iteration;
    options.sweeps_before = state.progress.sweeps;
}

TEST_F(Checkpoint, the_iterate_of_a_killed_solve_is_a_good_first_guess) {
    const Solve solve;
    for (const Method method : {Method::fgmres, Method::gmres, Method::bicgstab, Method::gcr, Method::idr}) {
        SolveOptions options{.method = method, .tolerance = 1e-9};
        std::vector<double> whole(solve.b.size());
        const SolveResult uninterrupted = solve.run(whole, options);
        ASSERT_TRUE(uninterrupted.converged);
        EXPECT_FALSE(os::child_ends([&] { solve.run_until_killed(file_, options); })) << "it should have been killed";

        SolverState state = read_checkpoint(host_context(), file_, solve.problem);
        EXPECT_EQ(state.progress.sweeps, 4) << "the second checkpoint is the last whole one";
        EXPECT_EQ(state.method, method);
        double believed = 0;  // the file must hold the iterate whose residual the method reported
        for (std::size_t c = 0; c < 2; ++c) {
            const auto column = [&](const std::vector<double>& all) {
                return std::span(all).subspan(c * kUnknowns, kUnknowns);
            };
            believed = std::max(believed, relative_residual(solve.matrix, column(solve.b), column(state.x)));
        }
        EXPECT_NEAR(believed, state.progress.relative_residual, 1e-10) << to_string(method);

        begin_anew(state, options);
        const SolveResult continued = solve.run(state.x, options);
        EXPECT_TRUE(continued.converged) << to_string(method);
        EXPECT_GT(continued.sweeps, 4);
        EXPECT_GT(continued.iterations, state.progress.iteration);
        for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(state.x[i], whole[i], 1e-6) << to_string(method);
    }
}

TEST_F(Checkpoint, counts_carry_on_against_the_limit) {
    const Solve solve;
    SolveOptions options{.method = Method::gmres, .tolerance = 1e-12, .max_iterations = 7};
    begin_anew(state_number(5), options);
    std::vector<double> x(solve.b.size());
    const SolveResult result = solve.run(x, options);
    EXPECT_EQ(result.stopped_by, "iterations (right-hand side 0)");
    EXPECT_EQ(result.iterations, 7);
    EXPECT_EQ(result.sweeps, 12);
    EXPECT_EQ(result.history.size(), 2u);
}

TEST_F(Checkpoint, a_preconditioned_cycle_gives_its_hidden_iterate) {
    const Solve solve;
    Dense scaling(kUnknowns);
    for (std::int64_t i = 0; i < kUnknowns; ++i) scaling.at(i, i) = 1 + 0.1 * static_cast<double>(i % 7);
    DenseOperator preconditioner(scaling);
    std::vector<std::vector<double>> stored;
    SolveOptions options{.method = Method::gmres, .tolerance = 1e-9, .preconditioner = &preconditioner};
    std::vector<double> undisturbed(solve.b.size()), x = undisturbed;
    solve.run(undisturbed, options);
    options.checkpoint_sweeps = 5;
    options.checkpoint = [&](std::span<const double> now, const Progress& progress) {
        EXPECT_EQ(progress.sweeps % 5, 0);
        stored.emplace_back(now.begin(), now.end());
        const std::span<const double> first = now.first(kUnknowns);
        EXPECT_LE(relative_residual(solve.matrix, std::span(solve.b).first(kUnknowns), first),
                  progress.relative_residual * (1 + 1e-8));
    };
    solve.run(x, options);
    EXPECT_GE(stored.size(), 2u);
    EXPECT_EQ(x, undisturbed) << "looking at a solve does not change it";
}

TEST_F(Checkpoint, torn_and_corrupted_files_are_refused_by_name) {
    const Context context = host_context();
    const SolverState state = state_number(3, 40);
    write_checkpoint(context, file_, state);
    const std::string whole = bytes_of(file_);
    for (const std::size_t length : {std::size_t{0}, std::size_t{95}, std::size_t{96}, whole.size() - 1}) {
        replace_bytes(file_, whole.substr(0, length));
        EXPECT_NE(refusal(context, file_, state.problem), "") << length << " bytes";
    }
    replace_bytes(file_, whole + "more");
    EXPECT_EQ(refusal(context, file_, state.problem),
              "the checkpoint is torn: 80 numbers should follow its header, 644 bytes do");
    for (std::size_t at = 0; at < whole.size(); at += at < 96 ? 1 : 37) {
        std::string wrong = whole;
        wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
        replace_bytes(file_, wrong);
        EXPECT_NE(refusal(context, file_, state.problem), "") << "byte " << at;
    }
    replace_bytes(file_, std::string(200, 'x'));
    EXPECT_EQ(refusal(context, file_, state.problem), "this is not a checkpoint of a solver");
    replace_bytes(file_, whole);
    EXPECT_EQ(refusal(context, file_, state.problem), "");
    EXPECT_THROW(read_checkpoint(context, directory_.file("none"), state.problem), Error);
}

TEST_F(Checkpoint, of_another_problem_is_refused_by_what_differs) {
    const Context context = host_context();
    const SolverState state = state_number(3, 40);
    write_checkpoint(context, file_, state);
    const auto with = [&](const std::function<void(Problem&)>& change) {
        Problem other = state.problem;
        change(other);
        return refusal(context, file_, other);
    };
    const std::string head = "the checkpoint is of another problem: ";
    EXPECT_EQ(with([](Problem& p) { p.unknowns = 41; }), head + "it has 40 unknowns, this one 41");
    EXPECT_EQ(with([](Problem& p) { p.columns = 1; }), head + "it has 2 right-hand sides, this one 1");
    EXPECT_EQ(with([](Problem& p) { p.right_hand_side = 1; }), head + "its right-hand side differs");
    EXPECT_EQ(with([](Problem& p) { p.matrix = 8; }), head + "its matrix differs");
}

}  // namespace
}  // namespace penstock::hmatrix
