// The Laplace functors with pointers to copies of their panels in device memory.
#include "hmatrix/gpu/functor_on_gpu.hpp"

namespace penstock::hmatrix {

FunctorOnGpu<LaplaceCollocation> collocation_on_gpu(const LaplaceProblem& problem) {
    return FunctorOnGpu<LaplaceCollocation>([&problem](gpu::Tables& tables) {
        return LaplaceCollocation{tables.copy(problem.panels()), &tables.copy(problem.centroids())->x};
    });
}

FunctorOnGpu<LaplaceGalerkin> galerkin_on_gpu(const LaplaceProblem& problem) {
    return FunctorOnGpu<LaplaceGalerkin>(
        [&problem](gpu::Tables& tables) { return LaplaceGalerkin{tables.copy(problem.panels())}; });
}

}  // namespace penstock::hmatrix
