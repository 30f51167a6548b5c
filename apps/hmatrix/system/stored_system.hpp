// A stored matrix ready for products and solves, in the numbering of the user's unknowns.
//
// Joins the parts: the file, the cache its batches come through, the operator, and for solves a surrogate (the tiers
// kept in memory) with block-Jacobi inside. One thread uses it at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "hmatrix/multiply/source/cached_source.hpp"
#include "hmatrix/multiply/source/page_cache_source.hpp"
#include "hmatrix/multiply/stored_matrix.hpp"
#include "hmatrix/solve/block_jacobi.hpp"
#include "hmatrix/solve/solve.hpp"
#include "hmatrix/system/compute.hpp"

namespace penstock::hmatrix {

struct SystemOptions {
    // pinned_tiers -1 here: as many as fit and help (kSurrogateAccuracy). `memory` is set by where products run.
    CacheOptions cache;
    bool on_host = false;        // products on the host though the context has a GPU
    // Batches are fetched by the device's own threads through a page cache; cache.pinned_batches and cache_bytes hold
    // for it. There are no tiers in memory then, and so no surrogate.
    bool gpu_initiated = false;
    bool zig_zag = false;
    int workers = 0;             // threads; 0: one a core
    std::int64_t block_size = 64;  // of block-Jacobi, at most kLargestBlock; 0: no preconditioner
};

constexpr double kSurrogateAccuracy = 1e-2;  // coarser costs more sweeps, finer more memory

// How a solve is to be done, beside the method's own options.
struct SystemSolve {
    SolveOptions options;
    bool surrogate = true;       // for fgmres, where tiers are pinned
    // Block-Jacobi: inside of fgmres, or right of the others. What it needs and is not in memory is read once.
    bool preconditioner = true;
};

class StoredSystem {
  public:
    StoredSystem(const Context& context, const std::string& path, const SystemOptions& options);

    const MatrixFile& file() const noexcept { return file_; }
    SourceCounts counts() const { return batches_->counts(); }
    struct InMemory {
        std::int64_t bytes = 0;
        int tiers = 0;
        std::int64_t batches = 0;
        std::int64_t slots = 0;  // for batches that pass through
    };
    InMemory in_memory() const noexcept;
    std::int64_t sweeps() const noexcept { return matrix_->sweeps(); }

    // y = A x for `count` columns; `accuracy` as LinearOperator::apply has it.
    void multiply(std::span<const double> x, std::span<double> y, double accuracy);
    // What a solver waits for in a sweep: of products with one vector that is, and stays, in the device's memory.
    double product_seconds(int products, double accuracy);
    SolveResult solve(std::span<const double> b, std::span<double> x, const SystemSolve& how);

  private:
    CacheOptions cache_options(const SystemOptions& options) const;
    void open_source(const Context& context, const SystemOptions& options);
    void to_matrix(std::span<const double> from, std::span<double> to) const;
    void to_user(std::span<const double> from, std::span<double> to) const;
    LinearOperator* preconditioner();
    std::unique_ptr<LinearOperator> jacobi_of(int tiers);
    void need_columns(std::span<const double> given, std::span<const double> made) const;

    Workers workers_;
    MatrixFile file_;
    std::int64_t block_size_;
    std::unique_ptr<Compute> compute_;
    std::unique_ptr<BatchSource> batches_;
    CachedSource* cached_ = nullptr;        // batches_, unless the device fetches for itself
    PageCacheSource* page_cache_ = nullptr;  // batches_, if it does
    std::unique_ptr<StoredMatrix> matrix_;
    std::unique_ptr<StoredMatrix> surrogate_;  // null when no tiers are pinned
    std::unique_ptr<LinearOperator> jacobi_;   // made when first asked for
};

}  // namespace penstock::hmatrix
