// Chooses what stays in memory, and converts between the user's numbering and the matrix's.
#include "hmatrix/system/stored_system.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "hmatrix/system/diagonal.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {

StoredSystem::StoredSystem(const Context& context, const std::string& path, const SystemOptions& options)
    : context_(context),
      workers_(options.workers),
      file_(MatrixFile::open(context, workers_, path)),
      block_size_(std::min(options.block_size, kLargestBlock)) {
    const DeviceScope current(context_.device());
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
        pages.verify = options.cache.verify;
        pages.pinned_batches = std::max<std::int64_t>(0, options.cache.pinned_batches);
        auto source = std::make_unique<PageCacheSource>(context, workers_, file_, pages);
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

// Pins as many tiers as a surrogate needs, as long as enough memory remains for other batches. Enough is eight batches,
// or a third of the memory if batches are large, but at least one batch.
CacheOptions StoredSystem::cache_options(const SystemOptions& options) const {
    CacheOptions cache = options.cache;
    if (cache.pinned_tiers >= 0) return cache;
    cache.pinned_tiers = file_.tiers() > 1 ? file_.tiers_for(kSurrogateAccuracy) : 0;
    if (cache.cache_bytes == 0 || file_.prefix_bytes(file_.tiers()) <= cache.cache_bytes) {
        cache.pinned_batches = -1;
        return cache;
    }
    const std::int64_t to_pages = file_.head().batches * kPage;
    constexpr std::int64_t kPassing = 8;
    const auto fits = [&] {
        const std::int64_t pinned = file_.prefix_bytes(cache.pinned_tiers) + to_pages;
        const std::int64_t left = cache.cache_bytes - pinned;
        const std::int64_t some = kPassing * (file_.largest_batch() + kPage);
        return left >= std::min(cache.cache_bytes / 3, some) && left >= file_.largest_batch() + 2 * kPage;
    };
    while (cache.pinned_tiers > 0 && !fits()) --cache.pinned_tiers;
    return cache;
}

void StoredSystem::need_columns(std::span<const double> given, std::span<const double> made) const {
    const auto n = static_cast<std::size_t>(file_.head().unknowns);
    if (!given.empty() && given.size() % n == 0 && made.size() == given.size()) return;
    const bool first = given.empty() || given.size() % n != 0;
    throw Error(ErrorCode::invalid_argument, "multiply with a matrix",
                first ? std::to_string(given.size()) + " numbers are not columns of " + std::to_string(n) + " unknowns"
                      : "there is room for " + std::to_string(made.size()) + " numbers of the result, and " +
                            std::to_string(given.size()) + " are needed");
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
    const DeviceScope current(context_.device());
    need_columns(x, y);
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

double StoredSystem::product_seconds(int products, double accuracy) {
    const DeviceScope current(context_.device());
    const std::int64_t n = file_.head().unknowns;
    VectorSpace& vectors = compute_->vectors();
    const auto there = vectors.allocate(2);
    const std::vector<double> ones(n, 1.0);
    vectors.upload(ones, there.get());
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < products; ++i) matrix_->apply(there.get(), there.get() + n, 1, accuracy);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

LinearOperator* StoredSystem::preconditioner() {
    if (block_size_ <= 0) return nullptr;
    if (!jacobi_) {
        const int pinned = cached_ == nullptr ? 0 : cached_->pinned_tiers();
        const int tiers = pinned > 0 ? pinned : file_.tiers_for(kSurrogateAccuracy);
        try {
            jacobi_ = jacobi_of(tiers);
        } catch (const Error& error) {
            // A block may be singular with few tiers: rows of the two sides of a thin plate differ by less than these
            // tiers hold.
            if (error.code() != ErrorCode::invalid_argument || tiers == file_.tiers()) throw;
            jacobi_ = jacobi_of(file_.tiers());
        }
    }
    return jacobi_.get();
}

std::unique_ptr<LinearOperator> StoredSystem::jacobi_of(int tiers) {
    const DiagonalOptions how{block_size_, tiers, compute_->stream()};
    const auto blocks = diagonal_blocks(file_, *batches_, workers_, how);
    return compute_->block_jacobi(factor_blocks(file_.head().unknowns, blocks, &workers_));
}

SolveResult StoredSystem::solve(std::span<const double> b, std::span<double> x, const SystemSolve& how) {
    const DeviceScope current(context_.device());
    need_columns(b, x);
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
    const SolveResult result = hmatrix::solve(compute_->vectors(), {*matrix_, right, solution}, options);
    to_user(solution, x);
    return result;
}

}  // namespace penstock::hmatrix
