// What computes passes over bodies: threads of the host, or a GPU.
#pragma once

#include <cstdint>
#include <memory>

#include "nbody/bodies.hpp"
#include "penstock/context.hpp"

namespace penstock::nbody {

class BodyEngine {
  public:
    virtual ~BodyEngine() = default;
    // Passes run in the order of calls, each after the one before.
    virtual void run(const Evaluate& pass) = 0;
    virtual void run(const Correct& pass) = 0;
    // Returns when all passes are done. Throws Error{device_error} where one failed.
    virtual void wait() = 0;
};

std::unique_ptr<BodyEngine> make_body_engine_of_host(unsigned threads);
// Throws Error{unsupported} in a build without CUDA.
std::unique_ptr<BodyEngine> make_body_engine_of_gpu(const Context& context);

}  // namespace penstock::nbody
