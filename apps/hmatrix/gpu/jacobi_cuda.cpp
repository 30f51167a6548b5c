// Inverts the blocks on the host, one column of all blocks at a time.
#include <algorithm>

#include "cuda_check.hpp"
#include "hmatrix/gpu/jacobi.hpp"
#include "hmatrix/gpu/kernels.hpp"
#include "hmatrix/gpu/memory.hpp"

namespace penstock::hmatrix {
namespace {

// The inverses, column-major, each at the index of its block's factors.
std::vector<float> inverses(const FactoredBlocks& blocks) {
    std::vector<float> inverse(blocks.factors.size());
    std::int64_t largest = 0;
    for (std::int64_t b = 0; b < blocks.count(); ++b) {
        largest = std::max(largest, blocks.offsets[b + 1] - blocks.offsets[b]);
    }
    const auto solver = make_host_block_jacobi(blocks);
    std::vector<double> unit(blocks.unknowns), column(blocks.unknowns);
    for (std::int64_t c = 0; c < largest; ++c) {
        std::fill(unit.begin(), unit.end(), 0.0);
        for (std::int64_t b = 0; b < blocks.count(); ++b) {
            if (blocks.offsets[b] + c < blocks.offsets[b + 1]) unit[blocks.offsets[b] + c] = 1;
        }
        solver->apply(unit.data(), column.data(), 1, 0);
        for (std::int64_t b = 0; b < blocks.count(); ++b) {
            const std::int64_t begin = blocks.offsets[b], size = blocks.offsets[b + 1] - begin;
            if (c >= size) continue;
            float* const to = inverse.data() + blocks.places[b] + c * size;
            for (std::int64_t i = 0; i < size; ++i) to[i] = static_cast<float>(column[begin + i]);
        }
    }
    return inverse;
}

class GpuBlockJacobi final : public LinearOperator {
  public:
    GpuBlockJacobi(const Context& context, Stream& stream, const FactoredBlocks& blocks)
        : context_(context),
          stream_(stream),
          unknowns_(blocks.unknowns),
          count_(blocks.count()),
          offsets_(context_.device(), stream, blocks.offsets),
          places_(context_.device(), stream, blocks.places),
          inverse_(context_.device(), stream, inverses(blocks)) {}

    void apply(const double* x, double* y, std::int64_t count, double) override {
        const auto stream = static_cast<cudaStream_t>(stream_.native_handle());
        for (std::int64_t column = 0; column < count; ++column) {
            const gpu::BlockDiagonal what{inverse_.data(), offsets_.data(), places_.data(), count_,
                                          x + column * unknowns_, y + column * unknowns_};
            apps::check_cuda(gpu::launch_block_diagonal(what, stream), "apply block-Jacobi");
        }
    }

  private:
    Context context_;
    Stream& stream_;
    std::int64_t unknowns_;
    std::int64_t count_;
    gpu::DeviceArray<std::int64_t> offsets_;
    gpu::DeviceArray<std::int64_t> places_;
    gpu::DeviceArray<float> inverse_;
};

}  // namespace

std::unique_ptr<LinearOperator> make_gpu_block_jacobi(const Context& context, Stream& stream, FactoredBlocks blocks) {
    return std::make_unique<GpuBlockJacobi>(context, stream, blocks);
}

}  // namespace penstock::hmatrix
