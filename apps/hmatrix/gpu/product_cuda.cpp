// Keeping a GPU busy with batches, and telling when their memory is free.
#include "hmatrix/gpu/product_cuda.hpp"

#include <algorithm>
#include <utility>

#include "hmatrix/gpu/cuda_check.hpp"
#include "hmatrix/text.hpp"

namespace penstock::hmatrix::gpu {
namespace {

constexpr std::int64_t kUnderWay = 2;      // batches whose kernels are queued, where there is room for so many
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
    order_ = DeviceArray<std::int32_t>(device, stream_, made.order);
    warp_jobs_ = DeviceArray<Job>(device, stream_, made.warp_jobs);
    block_jobs_ = DeviceArray<Job>(device, stream_, made.block_jobs);
    batches_ = std::move(made.batches);
}

void GpuProduct::begin(const Operands& vectors, const Extent& extent) {
    static_cast<void>(drain());  // of a sweep that an error ended
    vectors_ = vectors;
    tiers_ = extent.tiers;
    most_under_way_ = static_cast<std::size_t>(std::clamp<std::int64_t>(extent.batches - 1, 0, kUnderWay));
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

void GpuProduct::launch(const Batch& batch, std::int64_t column) {
    double* const y = vectors_.y + column * unknowns_;
    if (encoding_ == Encoding::tiers) {
        check(launch_product(batch, single_x_.data() + column * unknowns_, y, stream()), "multiply");
    } else {
        check(launch_product(batch, vectors_.x + column * unknowns_, y, stream()), "multiply");
    }
}

std::vector<std::int64_t> GpuProduct::add(std::int64_t number, const BatchView& view) {
    const BatchPlan& part = batches_[number];
    Batch batch{};
    std::copy(std::begin(view.tiers), std::end(view.tiers), batch.tiers);
    batch.tiers_used = tiers_;
    batch.leaves = leaves_.data();
    batch.order = order_.data() + part.first_order;
    batch.warp_jobs = warp_jobs_.data() + part.first_warp_job;
    batch.block_jobs = block_jobs_.data() + part.first_block_job;
    batch.warp_job_count = static_cast<std::int32_t>(part.warp_jobs);
    batch.block_job_count = static_cast<std::int32_t>(part.block_jobs);
    for (std::int64_t column = 0; column < vectors_.count; ++column) launch(batch, column);

    UnderWay begun{number, {}};
    if (spare_events_.empty()) {
        begun.done = context_.device().make_event();
    } else {
        begun.done = std::move(spare_events_.back());
        spare_events_.pop_back();
    }
    stream_.record(*begun.done);
    under_way_.push_back(std::move(begun));

    std::vector<std::int64_t> free;
    while (!under_way_.empty() && (under_way_.size() > most_under_way_ || under_way_.front().done->done())) {
        under_way_.front().done->wait(Deadline::never());
        free.push_back(under_way_.front().batch);
        spare_events_.push_back(std::move(under_way_.front().done));
        under_way_.pop_front();
    }
    return free;
}

std::vector<std::int64_t> GpuProduct::end() {
    if (encoding_ == Encoding::tiers) check(launch_scale_back(scaled(), vectors_.y, stream()), "scale a product");
    return drain();
}

std::vector<std::int64_t> GpuProduct::drain() {
    stream_.synchronize();
    std::vector<std::int64_t> free;
    for (UnderWay& one : under_way_) {
        free.push_back(one.batch);
        spare_events_.push_back(std::move(one.done));
    }
    under_way_.clear();
    return free;
}

}  // namespace penstock::hmatrix::gpu
