// Passes on a GPU, one behind the other on the model's stream.
#include "cuda_check.hpp"
#include "flow/engine.hpp"
#include "flow/kernels.hpp"
#include "penstock/device.hpp"

namespace penstock::flow {
namespace {

class GpuEngine final : public Engine {
  public:
    explicit GpuEngine(const Context& context) : context_(context), stream_(context.device().make_stream()) {}
    MemoryKind memory() const noexcept override { return MemoryKind::device; }
    void upload(double* to, const double* from, std::int64_t count) override {
        copy(CopyDirection::to_device, to, from, count);
    }
    void download(double* to, const double* from, std::int64_t count) override {
        copy(CopyDirection::to_host, to, from, count);
    }
    void run(const Close& pass) override { apps::check_cuda(launch(pass, handle()), "fill halos on the GPU"); }
    void run(const Advance& pass) override { apps::check_cuda(launch(pass, handle()), "advance it on the GPU"); }
    void run(const Diagnose& pass) override { apps::check_cuda(launch(pass, handle()), "diagnose it on the GPU"); }
    std::uintptr_t stream() const noexcept override {
        return is_default_ ? 0 : reinterpret_cast<std::uintptr_t>(stream_->native_handle());
    }
    void use_default_stream(bool use) noexcept override { is_default_ = use; }
    void wait() override {
        if (!is_default_) return stream_->synchronize();
        apps::check_cuda(cudaStreamSynchronize(handle()), "wait for the GPU");
    }

  private:
    void copy(CopyDirection direction, double* to, const double* from, std::int64_t count) {
        context_.device().enter_thread();
        stream_->copy(direction, to, from, static_cast<std::uint64_t>(count) * sizeof(double));
        stream_->synchronize();
    }
    // The calling thread may be another one at each call, so it enters the device first.
    cudaStream_t handle() {
        context_.device().enter_thread();
        return is_default_ ? cudaStreamLegacy : static_cast<cudaStream_t>(stream_->native_handle());
    }

    Context context_;
    std::unique_ptr<Stream> stream_;
    bool is_default_ = false;
};

}  // namespace

std::unique_ptr<Engine> make_gpu_engine(const Context& context) { return std::make_unique<GpuEngine>(context); }

}  // namespace penstock::flow
