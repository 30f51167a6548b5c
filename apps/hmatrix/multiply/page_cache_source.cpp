// Two pieces of memory that batches pass through, and the thread that fills them.
#include "hmatrix/multiply/page_cache_source.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "hmatrix/multiply/kernels.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr int kPieces = 2;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) {
    return std::chrono::duration<double>(Clock::now() - began).count();
}

std::int64_t up(std::int64_t bytes, std::int64_t step) noexcept { return (bytes + step - 1) / step * step; }

}  // namespace

PageCacheSource::PageCacheSource(const Context& context, Workers& workers, const MatrixFile& file,
                                 const PageCacheOptions& options)
    : context_(context),
      file_(file),
      options_(options),
      verifier_(file, options.verify, {context, workers, MemoryKind::device}) {
    options_.pinned_batches = std::clamp<std::int64_t>(options.pinned_batches, 0, file.head().batches);
    const std::int64_t piece = file.largest_batch() + kRowsTogether;
    for (std::int64_t b = 0; b < options_.pinned_batches; ++b) {
        pinned_bytes_ += up(file.tables().batches[b].bytes + options_.page_bytes, options_.page_bytes);
    }
    const std::int64_t pages = options_.cache_bytes - kPieces * piece;
    if (pages < pinned_bytes_ + file.largest_batch()) {
        throw Error(ErrorCode::invalid_argument, "open a matrix for products",
                    "a cache of " + std::to_string(options_.cache_bytes) + " bytes cannot hold " +
                        std::to_string(pinned_bytes_) + " pinned bytes and " + std::to_string(kPieces + 1) +
                        " batches of " + std::to_string(file.largest_batch()),
                    "give more memory, pin less, or build the matrix with smaller batches");
    }
    DeviceCacheOptions how;
    how.page_bytes = static_cast<std::uint64_t>(options_.page_bytes);
    // More than the file would be taken, and touched, for nothing.
    const std::int64_t useful = up(file.head().file_bytes, options_.page_bytes) + 2 * options_.page_bytes;
    how.cache_bytes = static_cast<std::uint64_t>(std::min(pages, std::max(useful, pinned_bytes_)));
    how.policy = options_.policy;
    cache_ = std::make_unique<DeviceCache>(context_, std::span(&file.file(), 1), how);
    cache_->advise(0, CacheAdvice::sweep);
    pin();
    pieces_.resize(kPieces);
    for (Piece& one : pieces_) one.memory = context_.allocate(static_cast<std::uint64_t>(piece));
    server_ = std::thread([this] { serve(); });
}

PageCacheSource::~PageCacheSource() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    if (server_.joinable()) server_.join();
}

void PageCacheSource::pin() {
    const auto began = Clock::now();
    const DeviceCacheStatistics room = cache_->statistics();
    const auto most = static_cast<std::int64_t>(room.pages_to_pin * room.page_bytes);
    if (pinned_bytes_ > most) {
        throw Error(ErrorCode::invalid_argument, "open a matrix for products",
                    "a page cache of " + std::to_string(room.pages * room.page_bytes) + " bytes cannot hold " +
                        std::to_string(pinned_bytes_) + " pinned: " + std::to_string(most) + " can be",
                    "give more memory, or pin less");
    }
    for (std::int64_t b = 0; b < options_.pinned_batches; ++b) {
        const BatchRecord& record = file_.tables().batches[b];
        if (record.bytes > 0) {
            cache_->pin(0, static_cast<std::uint64_t>(record.offset), static_cast<std::uint64_t>(record.bytes));
        }
    }
    read_at_opening_ = counts().bytes_read;
    counts_.wait_s += seconds_since(began);
}

void PageCacheSource::serve() {
    context_.device().enter_thread();
    std::unique_lock lock(mutex_);
    while (true) {
        Piece* next = nullptr;
        changed_.wait(lock, [&] {
            for (Piece& piece : pieces_) {
                if (piece.state == State::wanted) next = &piece;
            }
            return stop_ || next != nullptr;
        });
        if (stop_) return;
        next->state = State::filling;
        lock.unlock();
        std::exception_ptr failure;
        try {
            fetch(*next);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        next->failure = failure;
        next->state = State::ready;
        changed_.notify_all();
    }
}

void PageCacheSource::fetch(const Piece& piece) {
    const std::int64_t bytes = file_.prefix_bytes(piece.batch, piece.tiers);
    if (bytes == 0) return;
    const MemoryView to = piece.memory.view().slice(0, static_cast<std::uint64_t>(bytes));
    bytes_asked_ += bytes;
    cache_->read(0, static_cast<std::uint64_t>(file_.tables().batches[piece.batch].offset), to);
    verifier_.check(piece.batch, {0, piece.tiers}, {static_cast<const std::byte*>(piece.memory.data()), 0});
}

std::int64_t PageCacheSource::upcoming(std::int64_t steps) const noexcept {
    const std::int64_t at = position_ + steps;
    const auto now = static_cast<std::int64_t>(sweep_.order.size());
    if (at < now) return sweep_.order[at];
    return at - now < static_cast<std::int64_t>(sweep_.next.size()) ? sweep_.next[at - now] : -1;
}

PageCacheSource::Piece* PageCacheSource::find(std::int64_t batch) noexcept {
    for (Piece& piece : pieces_) {
        if (piece.batch == batch && piece.state != State::free) return &piece;
    }
    return nullptr;
}

// The next batches of the sweep that no piece has, into pieces that are free or hold what is not wanted soon.
void PageCacheSource::want_next() {
    for (int step = 0; step < kPieces; ++step) {
        const std::int64_t batch = upcoming(step);
        if (batch < 0) return;
        Piece* piece = find(batch);
        if (piece != nullptr && (piece->state != State::ready || piece->tiers >= sweep_.tiers)) continue;
        if (piece == nullptr) {
            for (Piece& one : pieces_) {
                const bool idle = one.state == State::free || (one.state == State::ready && one.batch != upcoming(0));
                if (idle) piece = &one;
            }
        }
        if (piece == nullptr) return;
        piece->batch = batch;
        piece->tiers = sweep_.tiers;
        piece->state = State::wanted;
        changed_.notify_all();
    }
}

void PageCacheSource::begin(const Sweep& sweep) {
    const std::lock_guard lock(mutex_);
    sweep_ = sweep;
    position_ = 0;
    for (Piece& piece : pieces_) {  // of a sweep that an error ended
        if (piece.state == State::taken) piece.state = State::free;
    }
    want_next();
}

BatchView PageCacheSource::take(std::int64_t batch) {
    const auto began = Clock::now();
    std::unique_lock lock(mutex_);
    want_next();
    Piece* piece = find(batch);
    if (piece == nullptr) throw Error(ErrorCode::internal, "take a batch", "both pieces of memory are in use");
    changed_.wait(lock, [&] { return piece->state == State::ready; });
    counts_.wait_s += seconds_since(began);
    ++counts_.batches_taken;
    if (piece->failure) {
        piece->state = State::free;
        std::rethrow_exception(std::exchange(piece->failure, nullptr));
    }
    piece->state = State::taken;
    ++position_;
    const BatchRecord& record = file_.tables().batches[batch];
    BatchView view;
    const auto* memory = static_cast<const std::byte*>(piece->memory.data());
    for (int tier = 0; tier < sweep_.tiers; ++tier) view.tiers[tier] = memory + record.tier_begin[tier];
    return view;
}

void PageCacheSource::give_back(std::int64_t batch) {
    const std::lock_guard lock(mutex_);
    if (Piece* const piece = find(batch)) piece->state = State::free;
    want_next();
}

// Pages are read whole, with what lies on them of the batches beside: a little more is read than missed.
SourceCounts PageCacheSource::counts() const {
    SourceCounts counts = counts_;
    counts.bytes_taken = bytes_asked_;
    const DeviceCacheStatistics statistics = cache_->statistics();
    const auto count = [&](const std::string& source, std::uint64_t bytes) {
        if (bytes == 0) return;
        counts.bytes_read += static_cast<std::int64_t>(bytes);
        counts.bytes_by_path["gpu, served by " + source] += static_cast<std::int64_t>(bytes);
    };
    for (const auto& served : statistics.served) count(served.source, served.bytes);
    count("its own mapping", statistics.mapped_pages * statistics.page_bytes);
    const std::int64_t missed = counts.bytes_read - read_at_opening_;
    counts.bytes_hit = std::max<std::int64_t>(0, counts.bytes_taken - missed);
    return counts;
}

}  // namespace penstock::hmatrix
