// Assembles entries into a .hmat file, batch by batch. Memory holds two batches, never the whole matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hmatrix/assemble/leaf_maker.hpp"
#include "hmatrix/file/format.hpp"
#include "hmatrix/geometry/mesh.hpp"
#include "hmatrix/kernel/entries.hpp"
#include "hmatrix/threads/workers.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

struct AssembleProgress {
    std::int64_t leaves_done = 0;
    std::int64_t leaves = 0;
    std::int64_t bytes_written = 0;
};

// Where leaves are made. The host encodes and writes them in any case.
enum class AssembleOn {
    // The context's GPU if there is one, the problem has a functor for it, and ACA+ is off; otherwise the host.
    automatic,
    host,
    gpu,
};

struct AssembleOptions {
    double eps = 1e-4;  // relative accuracy: of each leaf in the Frobenius norm, and so of a product; 1e-12 to 0.5
    double eta = 2;
    std::int64_t leaf_size = 15;
    bool aca_plus = false;
    Encoding encoding = Encoding::tiers;
    std::vector<double> accuracies{};      // one for each tier; empty: steps by a factor of ten from 0.1 to eps
    std::int64_t batch_bytes = 64 * kMiB;  // approximate size of a batch, counted as doubles
    std::int64_t batches = 0;              // if above 0, the number of batches (of about equal size) instead
    // Number of rows to compare with the true matrix at the end. 0: no check. -1: as many rows as hold 2^22 entries, at
    // least 128, at most all. The check can miss errors that lie in fewer rows than it samples.
    std::int64_t check_rows = -1;
    double refuse_error = 10;  // times eps: a larger sampled error is an Error, and no file appears
    AssembleOn on = AssembleOn::automatic;
    std::int64_t gpu_bytes = 512 * kMiB;  // GPU memory for factors in progress, at most half of the free memory
    std::string about = "{}";             // JSON text that the file keeps
    // Called after each batch; returning false stops with Error{cancelled}.
    std::function<bool(const AssembleProgress&)> progress{};
};

struct Assembled {
    FileHeader head{};
    std::int64_t evaluated = 0;     // number of evaluated entries
    std::int64_t repairs = 0;       // see AcaResult
    std::int64_t full_rank = 0;     // low-rank leaves whose rank equals their smaller side
    std::string on;                 // device that made the leaves: "host", "cuda:0"
    std::int64_t left_to_host = 0;  // see LeafMaker
    double assemble_s = 0;
    double write_s = 0;  // time spent waiting for storage
};

// The matrix to assemble: a point for each unknown, and entries in the numbering of these points.
struct MatrixProblem {
    std::span<const Point> points;
    const Entries* entries = nullptr;
    // The same entries for a GPU; null if they run on the host only, as a Python function does.
    const GpuEntries* on_gpu = nullptr;
};

// Writes the matrix to a file at `path`. Throws Error for options out of range, for a requested GPU that cannot do it,
// for entries that are not finite, for a sampled error above refuse_error * eps, and for failures of writing. If it
// throws, `path` refers to no file or to the file that was there before.
Assembled assemble(const Context& context, Workers& workers, const MatrixProblem& problem, const std::string& path,
                   const AssembleOptions& options);

}  // namespace penstock::hmatrix
