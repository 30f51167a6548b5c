// Products and vectors on a GPU. All work uses one stream, so each step sees the results of the step before.
#include "hmatrix/gpu/jacobi.hpp"
#include "hmatrix/gpu/product_cuda.hpp"
#include "hmatrix/gpu/vectors.hpp"
#include "hmatrix/system/compute.hpp"

namespace penstock::hmatrix {
namespace {

class GpuCompute final : public Compute {
  public:
    GpuCompute(const Context& context, const MatrixFile& file)
        : context_(context),
          stream_(context_.device().make_stream()),
          product_(context_, *stream_, file),
          vectors_(make_gpu_vectors(context_, *stream_, file.head().unknowns)) {}
    MemoryKind memory() const noexcept override { return MemoryKind::device; }
    Stream* stream() noexcept override { return stream_.get(); }
    BatchProduct& product() noexcept override { return product_; }
    VectorSpace& vectors() noexcept override { return *vectors_; }
    std::unique_ptr<LinearOperator> block_jacobi(FactoredBlocks blocks) override {
        return make_gpu_block_jacobi(context_, *stream_, std::move(blocks));
    }

  private:
    Context context_;
    std::unique_ptr<Stream> stream_;
    gpu::GpuProduct product_;
    std::unique_ptr<VectorSpace> vectors_;
};

}  // namespace

std::unique_ptr<Compute> make_gpu_compute(const Context& context, const MatrixFile& file) {
    const DeviceScope current(context.device());
    return std::make_unique<GpuCompute>(context, file);
}

}  // namespace penstock::hmatrix
