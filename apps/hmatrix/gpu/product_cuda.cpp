// Keeps a GPU busy with batches, and reports when their memory is free.
#include "hmatrix/gpu/product_cuda.hpp"

#include <utility>

namespace penstock::hmatrix::gpu {
namespace {

// The number of collected batches that justifies a launch. With two launches under way, the GPU has enough to do, and
// further batches wait for a full launch. If many batches are in memory anyway, the first batch may also wait for
// others, because a launch of one batch takes almost as long as one of several.
std::int64_t enough(std::size_t under_way, std::int64_t most, bool at_hand) noexcept {
    constexpr std::size_t kAhead = 2;  // one launch runs, and one is queued after it
    if (under_way >= kAhead) return most;
    if (!at_hand) return 1;
    return under_way == 0 ? most / 8 : most / 2;
}

}  // namespace

GpuProduct::GpuProduct(const Context& context, Stream& stream, const MatrixFile& file)
    : context_(context),
      stream_(stream),
      unknowns_(file.head().unknowns),
      multiplier_(file.encoding() == Encoding::tiers ? multiply_digits(context, stream, file)
                                                     : multiply_doubles(context, stream, file)) {}

void GpuProduct::begin(const Operands& vectors, const Extent& extent) {
    static_cast<void>(drain());  // a sweep that failed may have left batches
    most_held_ = extent.batches - 1;
    stream_.fill(vectors.y, static_cast<std::uint64_t>(unknowns_ * vectors.count) * sizeof(double), 0);
    multiplier_->begin(vectors, extent.tiers);
}

// Launches all collected batches.
void GpuProduct::launch() {
    if (collected_.empty()) return;
    multiplier_->launch();
    UnderWay begun{std::move(collected_), {}};
    if (spare_events_.empty()) {
        begun.done = context_.device().make_event();
    } else {
        begun.done = std::move(spare_events_.back());
        spare_events_.pop_back();
    }
    stream_.record(*begun.done);
    under_way_.push_back(std::move(begun));
    collected_.clear();
}

void GpuProduct::give_back(UnderWay&& done, std::vector<std::int64_t>& free) {
    free.insert(free.end(), done.batches.begin(), done.batches.end());
    held_ -= static_cast<std::int64_t>(done.batches.size());
    spare_events_.push_back(std::move(done.done));
}

// While the GPU has enough to do, batches are collected. Many small launches would leave the GPU idle between them.
std::vector<std::int64_t> GpuProduct::add(std::int64_t number, const BatchView& view) {
    multiplier_->collect(number, view);
    collected_.push_back(number);
    ++held_;

    std::vector<std::int64_t> free;
    const auto oldest_done = [&] { return !under_way_.empty() && under_way_.front().done->done(); };
    while (oldest_done()) {
        give_back(std::move(under_way_.front()), free);
        under_way_.pop_front();
    }
    const std::int64_t most = multiplier_->most_collected();
    const std::int64_t wanted = enough(under_way_.size(), most, most_held_ >= 2 * most);
    if (static_cast<std::int64_t>(collected_.size()) >= wanted || held_ > most_held_) launch();
    while (held_ > most_held_) {
        under_way_.front().done->wait(Deadline::never());
        give_back(std::move(under_way_.front()), free);
        under_way_.pop_front();
    }
    return free;
}

std::vector<std::int64_t> GpuProduct::end() {
    launch();
    multiplier_->end();
    return drain();
}

std::vector<std::int64_t> GpuProduct::drain() {
    stream_.synchronize();
    std::vector<std::int64_t> free = std::move(collected_);
    for (UnderWay& one : under_way_) give_back(std::move(one), free);
    under_way_.clear();
    collected_.clear();
    multiplier_->forget();
    held_ = 0;
    return free;
}

}  // namespace penstock::hmatrix::gpu
