// Products of digits: jobs of warps and blocks on the GPU, and vectors in single precision.
#include <algorithm>
#include <iterator>
#include <utility>

#include "hmatrix/gpu/cuda_check.hpp"
#include "hmatrix/gpu/kernels.hpp"
#include "hmatrix/gpu/memory.hpp"
#include "hmatrix/gpu/multiplier.hpp"
#include "hmatrix/gpu/plan.hpp"
#include "hmatrix/text.hpp"

namespace penstock::hmatrix::gpu {
namespace {

constexpr double kSinglePrecision = 2e-7;  // accuracies below this would drown in the rounding of sums

class DigitsMultiplier final : public Multiplier {
  public:
    DigitsMultiplier(const Context& context, Stream& stream, const MatrixFile& file)
        : context_(context), stream_(stream), unknowns_(file.head().unknowns) {
        const double finest = file.head().accuracies[file.tiers() - 1];
        if (finest < kSinglePrecision) {
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

    void begin(const BatchProduct::Operands& vectors, int tiers) override {
        vectors_ = vectors;
        tiers_ = tiers;
        const std::int64_t values = unknowns_ * vectors.count;
        if (single_x_.size() < values) {
            single_x_ = DeviceArray<float>(context_.device(), values);
            largest_ = DeviceArray<unsigned long long>(context_.device(), vectors.count);
        }
        check(launch_to_single(scaled(), stream()), "round a vector");
    }

    void collect(std::int64_t number, const BatchView& view) override {
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
    }

    std::int64_t most_collected() const noexcept override { return kBatchesOfLaunch; }
    void forget() noexcept override { group_.count = 0; }

    void launch() override {
        for (std::int64_t column = 0; column < vectors_.count; ++column) {
            const float* const x = single_x_.data() + column * unknowns_;
            check(launch_product(group_, x, vectors_.y + column * unknowns_, stream()), "multiply");
        }
        group_.count = 0;
    }

    void end() override { check(launch_scale_back(scaled(), vectors_.y, stream()), "scale a product"); }

  private:
    Scaled scaled() const noexcept {
        return {vectors_.x, single_x_.data(), unknowns_, vectors_.count, largest_.data()};
    }
    cudaStream_t stream() const noexcept { return static_cast<cudaStream_t>(stream_.native_handle()); }

    Context context_;
    Stream& stream_;
    std::int64_t unknowns_;
    std::vector<BatchPlan> batches_;
    DeviceArray<Leaf> leaves_;
    DeviceArray<Piece> pieces_;
    DeviceArray<Job> warp_jobs_;
    DeviceArray<Job> block_jobs_;
    DeviceArray<float> single_x_;
    DeviceArray<unsigned long long> largest_;  // of single_x_'s columns
    BatchProduct::Operands vectors_;
    int tiers_ = 0;
    BatchGroup group_{};
};

}  // namespace

std::unique_ptr<Multiplier> multiply_digits(const Context& context, Stream& stream, const MatrixFile& file) {
    return std::make_unique<DigitsMultiplier>(context, stream, file);
}

}  // namespace penstock::hmatrix::gpu
