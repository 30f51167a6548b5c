// Keeping a GPU busy with batches, and telling when their memory is free.
#include "hmatrix/gpu/product_cuda.hpp"

#include <algorithm>
#include <utility>

#include "hmatrix/gpu/cuda_check.hpp"
#include "hmatrix/text.hpp"

namespace penstock::hmatrix::gpu {
namespace {

constexpr std::size_t kLaunchesAhead = 2;  // one runs, one is queued behind it
constexpr double kSinglePrecision = 2e-7;  // accuracies below this would drown in the rounding of sums

}  // namespace

GpuProduct::GpuProduct(const Context& context, Stream& stream, const MatrixFile& file)
    : context_(context), stream_(stream), encoding_(file.encoding()), unknowns_(file.head().unknowns) {
    const double finest = file.head().accuracies[file.tiers() - 1];
    if (encoding_ == Encoding::tiers && finest < kSinglePrecision) {
        throw Error(ErrorCode::unsupported, "multiply on a GPU",
                    "tiers of accuracy " + text_of(finest) + " are finer than the kernels' single precision",
                    "store the matrix as fp64, or multiply on the host");
    }
    check(allow_shared_memory(), "prepare products");
    Plan made = plan(file);
    Device& device = context_.device();
    leaves_ = DeviceArray<Leaf>(device, stream_, made.leaves);
    pieces_ = DeviceArray<Piece>(device, stream_, made.pieces);
    warp_jobs_ = DeviceArray<Job>(device, stream_, made.warp_jobs);
    block_jobs_ = DeviceArray<Job>(device, stream_, made.block_jobs);
    batches_ = std::move(made.batches);
}

void GpuProduct::begin(const Operands& vectors, const Extent& extent) {
    static_cast<void>(drain());  // of a sweep that an error ended
    vectors_ = vectors;
    tiers_ = extent.tiers;
    most_held_ = extent.batches - 1;
    const std::int64_t values = unknowns_ * vectors.count;
    stream_.fill(vectors.y, static_cast<std::uint64_t>(values) * sizeof(double), 0);
    if (encoding_ != Encoding::tiers) return;
    if (single_x_.size() < values) {
        single_x_ = DeviceArray<float>(context_.device(), values);
        largest_ = DeviceArray<unsigned long long>(context_.device(), vectors.count);
    }
    check(launch_to_single(scaled(), stream()), "round a vector");
}

Scaled GpuProduct::scaled() const noexcept {
    return {vectors_.x, single_x_.data(), unknowns_, vectors_.count, largest_.data()};
}

// One launch for all that was collected, and for each vector.
void GpuProduct::launch() {
    if (collected_.empty()) return;
    for (std::int64_t column = 0; column < vectors_.count; ++column) {
        double* const y = vectors_.y + column * unknowns_;
        if (encoding_ == Encoding::tiers) {
            check(launch_product(group_, single_x_.data() + column * unknowns_, y, stream()), "multiply");
        } else {
            check(launch_product(group_, vectors_.x + column * unknowns_, y, stream()), "multiply");
        }
    }
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
    group_.count = 0;
}

void GpuProduct::give_back(UnderWay&& done, std::vector<std::int64_t>& free) {
    free.insert(free.end(), done.batches.begin(), done.batches.end());
    held_ -= static_cast<std::int64_t>(done.batches.size());
    spare_events_.push_back(std::move(done.done));
}

// Batches that come while the GPU has enough to do are collected: many small launches would leave it idle in between.
std::vector<std::int64_t> GpuProduct::add(std::int64_t number, const BatchView& view) {
    const BatchPlan& part = batches_[number];
    const int place = group_.count++;
    Batch& batch = group_.batches[place];
    std::copy(std::begin(view.tiers), std::end(view.tiers), batch.tiers);
    batch.tiers_used = tiers_;
    batch.leaves = leaves_.data() + part.first_leaf;
    batch.pieces = pieces_.data();
    batch.warp_jobs = warp_jobs_.data() + part.first_warp_job;
    batch.block_jobs = block_jobs_.data() + part.first_block_job;
    batch.warp_job_count = static_cast<std::int32_t>(part.warp_jobs);
    batch.block_job_count = static_cast<std::int32_t>(part.block_jobs);
    const std::int32_t warp_blocks = (batch.warp_job_count + kWarpsOfBlock - 1) / kWarpsOfBlock;
    group_.block_jobs_end[place] = batch.block_job_count + (place > 0 ? group_.block_jobs_end[place - 1] : 0);
    group_.warp_blocks_end[place] = warp_blocks + (place > 0 ? group_.warp_blocks_end[place - 1] : 0);
    collected_.push_back(number);
    ++held_;

    std::vector<std::int64_t> free;
    const auto oldest_done = [&] { return !under_way_.empty() && under_way_.front().done->done(); };
    while (oldest_done()) {
        give_back(std::move(under_way_.front()), free);
        under_way_.pop_front();
    }
    if (group_.count == kBatchesOfLaunch || under_way_.size() < kLaunchesAhead || held_ > most_held_) launch();
    while (held_ > most_held_) {
        under_way_.front().done->wait(Deadline::never());
        give_back(std::move(under_way_.front()), free);
        under_way_.pop_front();
    }
    return free;
}

std::vector<std::int64_t> GpuProduct::end() {
    launch();
    if (encoding_ == Encoding::tiers) check(launch_scale_back(scaled(), vectors_.y, stream()), "scale a product");
    return drain();
}

std::vector<std::int64_t> GpuProduct::drain() {
    stream_.synchronize();
    std::vector<std::int64_t> free = std::move(collected_);
    for (UnderWay& one : under_way_) give_back(std::move(one), free);
    under_way_.clear();
    collected_.clear();
    group_.count = 0;
    held_ = 0;
    return free;
}

}  // namespace penstock::hmatrix::gpu
