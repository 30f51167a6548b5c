// Products with batches on a GPU. Kernels run one after another while the next batch is being read.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "hmatrix/gpu/multiplier.hpp"

namespace penstock::hmatrix::gpu {

class GpuProduct final : public BatchProduct {
  public:
    // All work goes to `stream`. Requires: `stream` outlives this object. Throws as the multiplier of the file's
    // encoding does.
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

    Context context_;
    Stream& stream_;
    std::int64_t unknowns_;
    std::unique_ptr<Multiplier> multiplier_;
    std::int64_t most_held_ = 0;  // batches that may stay unfinished when add() returns
    std::int64_t held_ = 0;
    std::vector<std::int64_t> collected_;  // batches for the next launch
    std::deque<UnderWay> under_way_;
    std::vector<std::unique_ptr<Event>> spare_events_;
};

}  // namespace penstock::hmatrix::gpu
