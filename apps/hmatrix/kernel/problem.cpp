// See problem.hpp.
#include "hmatrix/kernel/problem.hpp"

#include <string>

#include "penstock/error.hpp"

namespace penstock::hmatrix {

template class FunctorEntries<LaplaceCollocation>;
template class FunctorEntries<LaplaceGalerkin>;

static_assert(sizeof(Point) == 3 * sizeof(double), "centroids are read as xyz xyz ...");

LaplaceProblem::LaplaceProblem(const Mesh& mesh)
    : panels_(hmatrix::panels(mesh)), centroids_(hmatrix::centroids(mesh)), areas_(hmatrix::areas(mesh)) {}

double LaplaceProblem::capacitance_over_4pi_eps0(const std::vector<double>& density) const {
    if (density.size() != areas_.size()) {
        throw Error(ErrorCode::invalid_argument, "sum charge",
                    std::to_string(density.size()) + " densities for " + std::to_string(areas_.size()) + " triangles");
    }
    double charge = 0;
    for (std::size_t i = 0; i < density.size(); ++i) charge += density[i] * areas_[i];
    return kInverse4Pi * charge;
}

}  // namespace penstock::hmatrix
