// Products and vectors on the host, computed by the same workers.
#include "hmatrix/multiply/host_product.hpp"
#include "hmatrix/system/compute.hpp"

namespace penstock::hmatrix {
namespace {

class HostCompute final : public Compute {
  public:
    HostCompute(const MatrixFile& file, Workers& workers)
        : workers_(workers), product_(file, workers), vectors_(make_host_vectors(file.head().unknowns, &workers)) {}
    MemoryKind memory() const noexcept override { return MemoryKind::pinned; }
    Stream* stream() noexcept override { return nullptr; }
    BatchProduct& product() noexcept override { return product_; }
    VectorSpace& vectors() noexcept override { return *vectors_; }
    std::unique_ptr<LinearOperator> block_jacobi(FactoredBlocks blocks) override {
        return make_host_block_jacobi(std::move(blocks), &workers_);
    }

  private:
    Workers& workers_;
    HostProduct product_;
    std::unique_ptr<VectorSpace> vectors_;
};

}  // namespace

std::unique_ptr<Compute> make_host_compute(const MatrixFile& file, Workers& workers) {
    return std::make_unique<HostCompute>(file, workers);
}

}  // namespace penstock::hmatrix
