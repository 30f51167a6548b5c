// Choosing what stays in memory, and turning between the user's numbering and the matrix's.
#include "hmatrix/system/stored_system.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hmatrix/system/diagonal.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {

StoredSystem::StoredSystem(const Context& context, const std::string& path, const SystemOptions& options)
    : workers_(options.workers),
      file_(MatrixFile::open(context, workers_, path)),
      block_size_(std::min(options.block_size, kLargestBlock)) {
    const bool gpu = !options.on_host && !context.device().info().emulated;
    compute_ = gpu ? make_gpu_compute(context, file_) : make_host_compute(file_, workers_);
    open_source(context, options);
    BatchProduct& product = compute_->product();
    matrix_ = std::make_unique<StoredMatrix>(file_, *batches_, product, StoredOptions{0, options.zig_zag});
    const int pinned = cached_ == nullptr ? 0 : std::min(cached_->pinned_tiers(), file_.tiers_for(kSurrogateAccuracy));
    if (pinned > 0 && file_.tiers() > 1) {
        surrogate_ = std::make_unique<StoredMatrix>(file_, *batches_, product, StoredOptions{pinned, false});
    }
}

void StoredSystem::open_source(const Context& context, const SystemOptions& options) {
    if (options.gpu_initiated) {
        PageCacheOptions pages;
        pages.cache_bytes = options.cache.cache_bytes;
        pages.pinned_batches = std::max<std::int64_t>(0, options.cache.pinned_batches);
        auto source = std::make_unique<PageCacheSource>(context, file_, pages);
        page_cache_ = source.get();
        batches_ = std::move(source);
        return;
    }
    CacheOptions cache = cache_options(options);
    cache.memory = compute_->memory();
    auto source = std::make_unique<CachedSource>(context, workers_, file_, cache);
    cached_ = source.get();
    batches_ = std::move(source);
}

StoredSystem::InMemory StoredSystem::in_memory() const noexcept {
    if (cached_ != nullptr) {
        return {cached_->pinned_bytes(), cached_->pinned_tiers(), cached_->pinned_batches(), cached_->slots()};
    }
    return {page_cache_->pinned_bytes(), 0, page_cache_->pinned_batches(), 0};
}

// As many tiers as a surrogate needs, as long as two thirds of the memory are left for what passes through.
CacheOptions StoredSystem::cache_options(const SystemOptions& options) const {
    CacheOptions cache = options.cache;
    if (cache.pinned_tiers >= 0) return cache;
    const bool all_fits = cache.cache_bytes == 0 || file_.prefix_bytes(file_.tiers()) <= cache.cache_bytes;
    cache.pinned_tiers = file_.tiers() > 1 ? file_.tiers_for(kSurrogateAccuracy) : 0;
    const auto fits = [&] { return file_.prefix_bytes(cache.pinned_tiers) <= cache.cache_bytes / 3 * 2; };
    while (!all_fits && cache.pinned_tiers > 0 && !fits()) --cache.pinned_tiers;
    return cache;
}

void StoredSystem::need_columns(std::size_t values, const char* what) const {
    const auto n = static_cast<std::size_t>(file_.head().unknowns);
    if (values > 0 && values % n == 0) return;
    throw Error(ErrorCode::invalid_argument, "multiply with a matrix",
                std::string(what) + " has " + std::to_string(values) + " numbers, and the matrix " + std::to_string(n) +
                    " unknowns");
}

void StoredSystem::to_matrix(std::span<const double> from, std::span<double> to) const {
    const auto& order = file_.tables().order;
    for (std::size_t column = 0; column < from.size(); column += order.size()) {
        for (std::size_t i = 0; i < order.size(); ++i) to[column + i] = from[column + order[i]];
    }
}

void StoredSystem::to_user(std::span<const double> from, std::span<double> to) const {
    const auto& order = file_.tables().order;
    for (std::size_t column = 0; column < from.size(); column += order.size()) {
        for (std::size_t i = 0; i < order.size(); ++i) to[column + order[i]] = from[column + i];
    }
}

void StoredSystem::multiply(std::span<const double> x, std::span<double> y, double accuracy) {
    need_columns(x.size(), "x");
    if (y.size() != x.size()) need_columns(0, "y");
    std::vector<double> from(x.size()), to(x.size());
    to_matrix(x, from);
    const std::int64_t n = file_.head().unknowns, count = static_cast<std::int64_t>(x.size()) / n;
    VectorSpace& vectors = compute_->vectors();
    const auto there = vectors.allocate(2 * count);
    double* const product = there.get() + n * count;
    for (std::int64_t c = 0; c < count; ++c) vectors.upload(std::span(from).subspan(c * n, n), there.get() + c * n);
    matrix_->apply(there.get(), product, count, accuracy);
    for (std::int64_t c = 0; c < count; ++c) vectors.download(product + c * n, std::span(to).subspan(c * n, n));
    to_user(to, y);
}

LinearOperator* StoredSystem::preconditioner() {
    if (block_size_ <= 0 || cached_ == nullptr || !cached_->pins_all_batches()) return nullptr;
    if (!jacobi_) {
        const auto blocks = diagonal_blocks(file_, *cached_, workers_, block_size_);
        jacobi_ = make_host_block_jacobi(factor_blocks(file_.head().unknowns, blocks, &workers_), &workers_);
    }
    return jacobi_.get();
}

SolveResult StoredSystem::solve(std::span<const double> b, std::span<double> x, const SystemSolve& how) {
    need_columns(b.size(), "b");
    if (x.size() != b.size()) need_columns(0, "x");
    SolveOptions options = how.options;
    if (how.preconditioner) options.preconditioner = preconditioner();
    if (how.surrogate && options.method == Method::fgmres) options.surrogate = surrogate_.get();
    std::vector<double> right(b.size()), solution(x.size());
    to_matrix(b, right);
    to_matrix(x, solution);
    if (options.checkpoint) {
        const auto told = std::exchange(options.checkpoint, {});
        options.checkpoint = [&, told](std::span<const double> state, const Progress& progress) {
            std::vector<double> in_users_order(state.size());
            to_user(state, in_users_order);
            told(in_users_order, progress);
        };
    }
    const SolveResult result = hmatrix::solve(compute_->vectors(), *matrix_, right, solution, options);
    to_user(solution, x);
    return result;
}

}  // namespace penstock::hmatrix
