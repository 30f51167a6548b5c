// A few pieces of memory that batches pass through, and the server thread that fills them.
#include "hmatrix/multiply/source/page_cache_source.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "hmatrix/multiply/kernels.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kFewestPieces = 2, kMostPieces = 4;

// Upper bound for the bytes that a page cache keeps unpinned so that other pages can pass through. A small cache keeps
// an eighth.
std::int64_t most_passing(std::int64_t page_bytes) noexcept {
    return std::max<std::int64_t>(256 * page_bytes, 8 * kMiB);
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
    const std::int64_t pieces = count_pieces(piece);
    const std::int64_t pages = options_.cache_bytes - pieces * piece;
    if (pages < pinned_bytes_ + file.largest_batch()) {
        throw Error(ErrorCode::invalid_argument, "open a matrix for products",
                    "a cache of " + std::to_string(options_.cache_bytes) + " bytes cannot hold " +
                        std::to_string(pinned_bytes_) + " pinned bytes and " + std::to_string(kFewestPieces + 1) +
                        " batches of " + std::to_string(file.largest_batch()),
                    "give more memory, pin less, or build the matrix with smaller batches");
    }
    DeviceCacheOptions how;
    how.page_bytes = static_cast<std::uint64_t>(options_.page_bytes);
    // A cache larger than the file would allocate and touch memory for nothing.
    const std::int64_t useful = up(file.head().file_bytes, options_.page_bytes) + 2 * options_.page_bytes;
    const std::int64_t to_pin = pinned_bytes_ > 0 ? pinned_bytes_ + most_passing(options_.page_bytes) : 0;
    how.cache_bytes = static_cast<std::uint64_t>(std::min(pages, std::max(useful, to_pin)));
    how.policy = options_.policy;
    cache_ = std::make_unique<DeviceCache>(context_, std::span(&file.file(), 1), how);
    cache_->advise(0, CacheAdvice::sweep);
    pin();
    ahead_ = ReadAhead(pieces);
    for (std::int64_t i = 0; i < pieces; ++i) pieces_.push_back(context_.allocate(static_cast<std::uint64_t>(piece)));
    server_ = std::thread([this] { serve(); });
}

PageCacheSource::~PageCacheSource() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wanted_.notify_one();
    if (server_.joinable()) server_.join();
}

std::int64_t PageCacheSource::count_pieces(std::int64_t piece_bytes) const {
    const auto fits = [&](std::int64_t pieces) {
        const std::int64_t pages = options_.cache_bytes - pieces * piece_bytes;
        const std::int64_t passing = std::min(pages / 8 + options_.page_bytes, most_passing(options_.page_bytes));
        return pieces * piece_bytes <= options_.cache_bytes / 8 &&
               pages >= pinned_bytes_ + std::max(file_.largest_batch(), passing);
    };
    const std::int64_t most = std::min(kMostPieces, file_.head().batches);
    std::int64_t pieces = kFewestPieces;
    while (pieces < most && fits(pieces + 1)) ++pieces;
    return pieces;
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
    counts_.read_s += seconds_since(began);
}

void PageCacheSource::serve() {
    context_.device().enter_thread();
    std::unique_lock lock(mutex_);
    while (true) {
        ReadAhead::Fetch next;
        wanted_.wait(lock, [&] { return stop_ || (next = ahead_.start()).place >= 0; });
        if (stop_) return;
        lock.unlock();
        std::exception_ptr failure;
        try {
            fetch(next);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        ahead_.fetched(next.place, failure);
        fetched_.notify_one();
    }
}

void PageCacheSource::fetch(const ReadAhead::Fetch& wanted) {
    const std::int64_t bytes = file_.prefix_bytes(wanted.batch, wanted.tiers);
    if (bytes == 0) return;
    const MemoryView to = pieces_[wanted.place].view().slice(0, static_cast<std::uint64_t>(bytes));
    bytes_asked_ += bytes;
    cache_->read(0, static_cast<std::uint64_t>(file_.tables().batches[wanted.batch].offset), to);
    verifier_.check(wanted.batch, {0, wanted.tiers}, {static_cast<const std::byte*>(to.data), 0});
}

void PageCacheSource::begin(const Sweep& sweep) {
    const std::lock_guard lock(mutex_);
    ahead_.begin(sweep);
    wanted_.notify_one();
}

BatchView PageCacheSource::take(std::int64_t batch) {
    const auto began = Clock::now();
    std::unique_lock lock(mutex_);
    std::int64_t place = -1;
    fetched_.wait(lock, [&] {
        place = ahead_.ready(batch);
        wanted_.notify_one();
        return place >= 0;
    });
    counts_.read_s += seconds_since(began);
    ++counts_.batches_taken;
    ahead_.take(place);
    wanted_.notify_one();
    const BatchRecord& record = file_.tables().batches[batch];
    BatchView view;
    const auto* memory = static_cast<const std::byte*>(pieces_[place].data());
    for (int tier = 0; tier < ahead_.tiers(); ++tier) view.tiers[tier] = memory + record.tier_begin[tier];
    return view;
}

void PageCacheSource::give_back(std::int64_t batch) {
    const std::lock_guard lock(mutex_);
    ahead_.give_back(batch);
    wanted_.notify_one();
}

// The cache reads whole pages, which also hold bytes of neighbouring batches. It therefore reads a little more than the
// missed bytes.
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
