// Products with batches on a GPU: kernels started one behind the other, while the next batch is being read.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/gpu/kernels.hpp"
#include "hmatrix/gpu/memory.hpp"
#include "hmatrix/gpu/plan.hpp"
#include "hmatrix/multiply/batch_product.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix::gpu {

class GpuProduct final : public BatchProduct {
  public:
    // All work goes to `stream`, which must outlive it. Throws as plan(); Error{unsupported} too for tiers finer than
    // single precision.
    GpuProduct(const Context& context, Stream& stream, const MatrixFile& file);
    void begin(const Operands& vectors, const Extent& extent) override;
    std::vector<std::int64_t> add(std::int64_t batch, const BatchView& view) override;
    std::vector<std::int64_t> end() override;

  private:
    struct UnderWay {
        std::vector<std::int64_t> batches;
        std::unique_ptr<Event> done;
    };
    void launch();
    void give_back(UnderWay&& done, std::vector<std::int64_t>& free);
    std::vector<std::int64_t> drain();
    Scaled scaled() const noexcept;
    cudaStream_t stream() const noexcept { return static_cast<cudaStream_t>(stream_.native_handle()); }

    Context context_;
    Stream& stream_;
    Encoding encoding_;
    std::int64_t unknowns_;
    std::vector<BatchPlan> batches_;
    DeviceArray<Leaf> leaves_;
    DeviceArray<Piece> pieces_;
    DeviceArray<Job> warp_jobs_;
    DeviceArray<Job> block_jobs_;
    DeviceArray<float> single_x_;  // of digits
    DeviceArray<unsigned long long> largest_;  // of single_x_'s columns
    Operands vectors_;
    int tiers_ = 0;
    std::int64_t most_held_ = 0;  // batches that may be kept when add() returns
    std::int64_t held_ = 0;
    BatchGroup group_{};                   // of batches that come with the next launch
    std::vector<std::int64_t> collected_;  // their numbers
    std::deque<UnderWay> under_way_;
    std::vector<std::unique_ptr<Event>> spare_events_;
};

}  // namespace penstock::hmatrix::gpu
