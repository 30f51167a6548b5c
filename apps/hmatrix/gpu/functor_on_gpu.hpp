// Entries given by a C++ functor that runs on host and GPU.
//
// The functor is a struct of numbers and pointers. Its call operator is marked __host__ __device__ (PENSTOCK_BOTH of
// gpu/team.hpp also compiles as plain C++). The user compiles it with nvcc in one source file, with leaf_kernels.hpp. A
// build without CUDA leaves that file out, and the host does all the work.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "hmatrix/assemble/leaf_maker.hpp"
#include "hmatrix/gpu/leaves/leaf_group.hpp"
#include "hmatrix/gpu/memory.hpp"
#include "hmatrix/kernel/problem.hpp"

namespace penstock::hmatrix {

namespace gpu {

// Copies to device memory what a functor points into. Requires: this object outlives the functor's use of the copies.
class Tables {
  public:
    explicit Tables(Device& device) : device_(device), stream_(device.make_stream()) {}
    template <class Value>
    const Value* copy(const std::vector<Value>& values) {
        const auto made = std::make_shared<DeviceArray<Value>>(device_, *stream_, values);
        kept_.push_back(made);
        return made->data();
    }

  private:
    Device& device_;
    std::vector<std::shared_ptr<void>> kept_;
    std::unique_ptr<Stream> stream_;
};

// A functor with pointers into device memory, and the function that launches it.
struct Bound {
    std::shared_ptr<const void> functor;
    LaunchGroup launch = nullptr;
};

std::unique_ptr<LeafMaker> make_group_leaf_maker(const Context& context, Workers& workers, const LeafWork& work,
                                                 const Bound& bound);

#if defined(PENSTOCK_HAS_CUDA)
template <class Functor>
LaunchGroup group_launcher();  // defined in the file where nvcc compiles the functor
#else
template <class Functor>
LaunchGroup group_launcher() {
    return nullptr;
}
#endif

}  // namespace gpu

template <class Functor>
class FunctorOnGpu final : public GpuEntries {
  public:
    // The assembly calls it at its beginning. It copies what the functor points into, and returns the functor with
    // pointers to the copies.
    using There = std::function<Functor(gpu::Tables&)>;

    explicit FunctorOnGpu(There there, gpu::LaunchGroup launch = gpu::group_launcher<Functor>())
        : there_(std::move(there)), launch_(launch) {}

    std::unique_ptr<LeafMaker> leaf_maker(const Context& context, Workers& workers,
                                          const LeafWork& work) const override {
        struct Kept {
            gpu::Tables tables;
            Functor functor;
        };
        gpu::Tables tables(context.device());
        const Functor functor = there_(tables);
        const auto kept = std::make_shared<Kept>(Kept{std::move(tables), functor});
        return gpu::make_group_leaf_maker(context, workers, work, {{kept, &kept->functor}, launch_});
    }

  private:
    There there_;
    gpu::LaunchGroup launch_;
};

// The Laplace functors on a GPU. Requires: the problem outlives them.
FunctorOnGpu<LaplaceCollocation> collocation_on_gpu(const LaplaceProblem& problem);
FunctorOnGpu<LaplaceGalerkin> galerkin_on_gpu(const LaplaceProblem& problem);

}  // namespace penstock::hmatrix
