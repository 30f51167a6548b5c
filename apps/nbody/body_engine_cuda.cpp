// Passes on a GPU, one behind the other on a stream.
#include "cuda_check.hpp"
#include "nbody/body_engine.hpp"
#include "nbody/body_kernels.hpp"
#include "penstock/device.hpp"

namespace penstock::nbody {
namespace {

class GpuBodies final : public BodyEngine {
  public:
    explicit GpuBodies(const Context& context) : context_(context), stream_(context.device().make_stream()) {}
    void run(const Evaluate& pass) override { apps::check_cuda(launch(pass, handle()), "evaluate bodies on the GPU"); }
    void run(const Correct& pass) override { apps::check_cuda(launch(pass, handle()), "move bodies on the GPU"); }
    void wait() override { stream_->synchronize(); }

  private:
    // The calling thread may be another one at each call, so it enters the device first.
    cudaStream_t handle() {
        context_.device().enter_thread();
        return static_cast<cudaStream_t>(stream_->native_handle());
    }
    Context context_;
    std::unique_ptr<Stream> stream_;
};

}  // namespace

std::unique_ptr<BodyEngine> make_body_engine_of_gpu(const Context& context) {
    return std::make_unique<GpuBodies>(context);
}

}  // namespace penstock::nbody
