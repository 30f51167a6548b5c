// A stored matrix ready for products and solves, in the numbering of the user's unknowns.
//
// It joins the parts: the file, the source of its batches, and the operator. For solves it adds a surrogate (the tiers
// in memory) with block-Jacobi inside. Requires: one thread uses it at a time.
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
    // pinned_tiers = -1 means here: as many as fit and as a surrogate needs (kSurrogateAccuracy). The system sets
    // `memory`.
    CacheOptions cache;
    bool on_host = false;  // compute products on the host even if the context has a GPU
    // GPU threads fetch batches through a page cache, with cache.pinned_batches and cache.cache_bytes. No tiers are
    // pinned then, so there is no surrogate.
    bool gpu_initiated = false;
    bool zig_zag = false;
    int workers = 0;               // threads; 0: one for each core
    std::int64_t block_size = 64;  // of block-Jacobi, at most kLargestBlock; 0: no preconditioner
};

constexpr double kSurrogateAccuracy = 1e-2;  // a coarser surrogate costs more sweeps, a finer one more memory

// How to solve, beside the method's own options.
struct SystemSolve {
    SolveOptions options;
    bool surrogate = true;  // used by fgmres, if tiers are pinned
    // Uses block-Jacobi: inside fgmres, or from the right with the other methods. Its blocks are read once if they are
    // not in memory.
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
        std::int64_t slots = 0;  // for batches that are not pinned
    };
    InMemory in_memory() const noexcept;
    std::int64_t sweeps() const noexcept { return matrix_->sweeps(); }

    // y = A x for `count` columns. See LinearOperator::apply for `accuracy`.
    void multiply(std::span<const double> x, std::span<double> y, double accuracy);
    // Runs `products` products with one vector that stays in device memory. Returns the seconds that they take, which
    // is the time a solver waits in its sweeps.
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

    Context context_;
    Workers workers_;
    MatrixFile file_;
    std::int64_t block_size_;
    std::unique_ptr<Compute> compute_;
    std::unique_ptr<BatchSource> batches_;
    CachedSource* cached_ = nullptr;         // batches_ if it is a CachedSource, otherwise null
    PageCacheSource* page_cache_ = nullptr;  // batches_ if GPU threads fetch, otherwise null
    std::unique_ptr<StoredMatrix> matrix_;
    std::unique_ptr<StoredMatrix> surrogate_;  // null if no tiers are pinned
    std::unique_ptr<LinearOperator> jacobi_;   // made at its first use
};

}  // namespace penstock::hmatrix
