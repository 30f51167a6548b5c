// See continued.hpp.
#include "hmatrix/solve/continued/continued.hpp"

#include <filesystem>
#include <optional>
#include <utility>

#include "hmatrix/solve/continued/product_file.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

std::optional<SolverState> state_in(const CheckpointPlace& place) {
    try {
        return read_checkpoint(place.context, place.file, place.problem);
    } catch (const Error& error) {
        if (error.code() == ErrorCode::not_found) return std::nullopt;
        throw;
    }
}

std::string products_of(const CheckpointPlace& place) { return place.file + ".products"; }

// The log that belongs to the state. If its steps cannot be repeated, returns nothing and sets `why`.
std::optional<ProductFile> log_of(const CheckpointPlace& place, const SolverState& state, Method method,
                                  std::string& why) {
    if (state.method != method) {
        why = std::string("the checkpoint is of ") + to_string(state.method);
        return std::nullopt;
    }
    try {
        return std::make_optional<ProductFile>(place.context, products_of(place), state.problem, state.products);
    } catch (const Error& error) {
        why = error.what();
        return std::nullopt;
    }
}

// Makes one attempt. Its checkpoints name the log that belongs to them.
SolveResult run_logged(const CheckpointPlace& place, ProductFile& log, SolveOptions options,
                       const std::function<SolveResult(const SolveOptions&)>& run) {
    options.iterations_before = log.first().iterations;
    options.sweeps_before = log.first().sweeps;
    options.products = &log;
    options.checkpoint = [&](std::span<const double> x, const Progress& progress) {
        write_checkpoint(place.context, place.file,
                         {.problem = place.problem, .method = options.method, .progress = progress,
                          .x = {x.begin(), x.end()}, .products = log.settle()});
    };
    return run(options);
}

}  // namespace

const char* to_string(Continued how) noexcept {
    return how == Continued::no ? "no" : how == Continued::repeated ? "repeated" : "restarted";
}

ContinuedResult solve_continued(const CheckpointPlace& given, const SolveOptions& options, std::vector<double>& x,
                                const RunSolve& run) {
    // The solve writes checkpoints for hours, and the working folder may change meanwhile. The absolute name keeps them
    // in one place.
    const CheckpointPlace place{given.context, std::filesystem::absolute(given.file).string(), given.problem};
    const auto attempt = [&](ProductFile& log) {
        x = log.first().x;
        return run_logged(place, log, options, [&](const SolveOptions& how) { return run(x, how); });
    };
    const auto begin = [&](FirstGuess first) {
        ProductFile log(place.context, products_of(place), place.problem, std::move(first));
        return attempt(log);
    };
    ContinuedResult found;
    std::optional<SolverState> state = state_in(place);
    if (!state) {
        found.result = begin({.x = x});
        return found;
    }
    found.sweeps_before = state->progress.sweeps;
    if (std::optional<ProductFile> log = log_of(place, *state, options.method, found.restarted_because)) {
        try {
            found.how = Continued::repeated;
            found.result = attempt(*log);
            return found;
        } catch (const ReplayDiverged& error) {
            found.restarted_because = error.what();
        }
    }
    found.how = Continued::restarted;
    found.result = begin({.iterations = state->progress.iteration, .sweeps = state->progress.sweeps,
                          .x = std::move(state->x)});
    return found;
}

}  // namespace penstock::hmatrix
