// VectorSpace on a GPU. Each operation is a kernel; results reach the host through page-locked memory.
#include <algorithm>

#include "cuda_check.hpp"
#include "hmatrix/gpu/kernels.hpp"
#include "hmatrix/gpu/memory.hpp"
#include "hmatrix/gpu/vectors.hpp"

namespace penstock::hmatrix {
namespace {

class GpuVectors final : public VectorSpace {
  public:
    GpuVectors(const Context& context, Stream& stream, std::int64_t size)
        : context_(context), stream_(stream), size_(size) {}

    bool repeatable() const noexcept override { return false; }
    std::int64_t size() const noexcept override { return size_; }

    std::shared_ptr<double> allocate(std::int64_t count) override {
        const std::uint64_t bytes = static_cast<std::uint64_t>(size_) * count * sizeof(double);
        const auto buffer = std::make_shared<Buffer>(context_.allocate(std::max<std::uint64_t>(bytes, 1)));
        stream_.fill(buffer->data(), buffer->bytes(), 0);
        stream_.synchronize();
        return {buffer, static_cast<double*>(buffer->data())};
    }
    void upload(std::span<const double> host, double* to) override {
        stream_.copy(CopyDirection::to_device, to, host.data(), host.size_bytes());
        stream_.synchronize();
    }
    void download(const double* from, std::span<double> host) override {
        stream_.copy(CopyDirection::to_host, host.data(), from, host.size_bytes());
        stream_.synchronize();
    }
    void copy(const double* from, double* to) override { axpby({1, from, 0, to}); }
    void scale(double factor, double* x) override { axpby({factor, x, 0, x}); }
    void add(double factor, const double* x, double* y) override { axpby({factor, x, 1, y}); }
    double dot(const double* x, const double* y) override {
        double result = 0;
        dots(x, y, {&result, 1});
        return result;
    }
    void dots(const double* basis, const double* x, std::span<double> result) override {
        const auto columns = static_cast<std::int64_t>(result.size());
        if (columns == 0) return;
        if (columns > results_.size()) {
            partial_ = gpu::DeviceArray<double>(context_.device(), columns * gpu::kDotBlocks);
            results_ = gpu::DeviceArray<double>(context_.device(), columns, MemoryKind::pinned);
        }
        // The kernel writes the results to page-locked memory directly, so the host waits for no copy.
        const gpu::Dots what{basis, x, size_, columns, partial_.data(), results_.data()};
        apps::check_cuda(gpu::launch_dots(what, handle()), "dots");
        stream_.synchronize();
        std::copy_n(results_.data(), columns, result.data());
    }
    void combine(const double* basis, std::span<const double> factors, double* y) override {
        for (std::size_t first = 0; first < factors.size(); first += gpu::kCombineAtOnce) {
            const std::size_t count = std::min<std::size_t>(gpu::kCombineAtOnce, factors.size() - first);
            const auto part = factors.subspan(first, count);
            const double* const columns = basis + static_cast<std::int64_t>(first) * size_;
            gpu::Combination what{columns, size_, static_cast<int>(count), y, {}};
            std::copy(part.begin(), part.end(), what.factor);
            apps::check_cuda(gpu::launch_combine(what, handle()), "combine vectors");
        }
    }

  private:
    cudaStream_t handle() { return static_cast<cudaStream_t>(stream_.native_handle()); }
    void axpby(const gpu::Axpby& what) { apps::check_cuda(gpu::launch_axpby(what, size_, handle()), "add vectors"); }

    Context context_;
    Stream& stream_;
    std::int64_t size_;
    gpu::DeviceArray<double> partial_;
    gpu::DeviceArray<double> results_;
};

}  // namespace

std::unique_ptr<VectorSpace> make_gpu_vectors(const Context& context, Stream& stream, std::int64_t size) {
    return std::make_unique<GpuVectors>(context, stream, size);
}

}  // namespace penstock::hmatrix
