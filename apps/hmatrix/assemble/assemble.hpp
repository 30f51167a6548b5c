// From entries to a .hmat file, batch by batch: memory holds two batches, never the matrix.
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

// Where leaves are made. Encoding and writing are the host's either way.
enum class AssembleOn {
    automatic,  // on the context's GPU where there is one and the problem has a functor for it, and without ACA+
    host,
    gpu,
};

struct AssembleOptions {
    double eps = 1e-4;           // relative accuracy of a product, of each leaf in the Frobenius norm; 1e-12 to 0.5
    double eta = 2;
    std::int64_t leaf_size = 15;
    bool aca_plus = false;
    Encoding encoding = Encoding::tiers;
    std::vector<double> accuracies{};      // of tiers; empty: tenfold steps from 0.1 to eps
    std::int64_t batch_bytes = 64 * kMiB;  // of doubles that a batch of leaves would take, about
    std::int64_t batches = 0;              // instead: this many, of about as many bytes each
    // Compared with the true matrix at the end; 0: no check; -1: of 2^22 entries, but 128 or all. Errors that are in
    // fewer rows than were looked at can be missed.
    std::int64_t check_rows = -1;
    double refuse_error = 10;              // times eps: a sampled error above this is an Error and no file
    AssembleOn on = AssembleOn::automatic;
    std::int64_t gpu_bytes = 512 * kMiB;   // of the GPU's memory for factors under way; at most half of what is free
    std::string about = "{}";              // JSON text, kept in the file
    std::function<bool(const AssembleProgress&)> progress{};  // after each batch; false: stop, Error{cancelled}
};

struct Assembled {
    FileHeader head{};
    std::int64_t evaluated = 0;  // entries
    std::int64_t repairs = 0;    // see AcaResult
    std::int64_t full_rank = 0;  // low-rank leaves whose rank is their smaller side
    std::string on;              // the device that made the leaves: "host", "cuda:0"
    std::int64_t left_to_host = 0;  // see LeafMaker
    double assemble_s = 0;
    double write_s = 0;          // waiting for storage
};

// What is assembled: a point for each unknown, and entries in the numbering of these points.
struct MatrixProblem {
    std::span<const Point> points;
    const Entries* entries = nullptr;
    const GpuEntries* on_gpu = nullptr;  // the same entries for a GPU; null: the host only, as for a Python function
};

// The matrix as a file at `path`. Throws Error: options out of range, a GPU asked for that cannot do it, entries that
// are not finite, a sampled error above refuse_error * eps, and whatever writing throws; there is no file of that name
// then, or the one before.
Assembled assemble(const Context& context, Workers& workers, const MatrixProblem& problem, const std::string& path,
                   const AssembleOptions& options);

}  // namespace penstock::hmatrix
