// Passes on a GPU, one behind the other on the model's stream.
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
    void run(const Close& pass) override { check(launch(pass, handle()), "fill halos on the GPU"); }
    void run(const Advance& pass) override { check(launch(pass, handle()), "advance the model on the GPU"); }
    void run(const Diagnose& pass) override { check(launch(pass, handle()), "diagnose the model on the GPU"); }
    std::uintptr_t stream() const noexcept override {
        return reinterpret_cast<std::uintptr_t>(stream_->native_handle());
    }
    void wait() override { stream_->synchronize(); }

  private:
    void copy(CopyDirection direction, double* to, const double* from, std::int64_t count) {
        context_.device().enter_thread();
        stream_->copy(direction, to, from, static_cast<std::uint64_t>(count) * sizeof(double));
        stream_->synchronize();
    }
    // The calling thread may be another one at each call, so it enters the device first.
    cudaStream_t handle() {
        context_.device().enter_thread();
        return static_cast<cudaStream_t>(stream_->native_handle());
    }
    // Clears the pending code, so that other users of the runtime in this thread do not see it.
    static void check(cudaError_t code, const char* operation) {
        if (code == cudaSuccess) return;
        static_cast<void>(cudaGetLastError());
        ErrorInfo info;
        info.code = code == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device_error;
        info.system_code = static_cast<int>(code);
        info.operation = operation;
        info.cause = std::string(cudaGetErrorName(code)) + " (" + cudaGetErrorString(code) + ")";
        throw Error(std::move(info));
    }

    Context context_;
    std::unique_ptr<Stream> stream_;
};

}  // namespace

std::unique_ptr<Engine> make_gpu_engine(const Context& context) { return std::make_unique<GpuEngine>(context); }

}  // namespace penstock::flow
