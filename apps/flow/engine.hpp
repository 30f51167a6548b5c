// What computes passes: threads of the host, or a GPU.
#pragma once

#include <cstdint>
#include <memory>

#include "flow/passes.hpp"
#include "penstock/context.hpp"

namespace penstock::flow {

class Engine {
  public:
    virtual ~Engine() = default;
    // Where the arrays of passes lie.
    virtual MemoryKind memory() const noexcept = 0;
    // Copies of doubles between those arrays and memory of the caller, complete on return.
    virtual void upload(double* to, const double* from, std::int64_t count) = 0;
    virtual void download(double* to, const double* from, std::int64_t count) = 0;
    // Passes run in the order of calls, each after the one before.
    virtual void run(const Close& pass) = 0;
    virtual void run(const Advance& pass) = 0;
    virtual void run(const Diagnose& pass) = 0;
    // A cudaStream_t as a number: passes are queued there. 0 on the host, and of the default stream.
    virtual std::uintptr_t stream() const noexcept = 0;
    // Queues passes on the default stream of the device, as programs do that name none, or on a stream of its own.
    // Requires: no pass is queued. The host has no streams.
    virtual void use_default_stream(bool use) noexcept = 0;
    // Returns when all passes are done. Throws Error{device_error} where one failed.
    virtual void wait() = 0;
};

// `threads` 0: one a core that this process may use.
std::unique_ptr<Engine> make_host_engine(int threads);
// Throws Error{unsupported} in a build without CUDA.
std::unique_ptr<Engine> make_gpu_engine(const Context& context);

}  // namespace penstock::flow
