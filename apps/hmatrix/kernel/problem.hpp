// The surface charge problem of a mesh. It owns, on the host, the arrays that the Laplace functors point into.
//
// Requires: the problem outlives its functors and is not moved. For a GPU, the caller copies panels() and centroids()
// to it and makes functors with pointers to the copies.
#pragma once

#include <vector>

#include "hmatrix/kernel/entries.hpp"
#include "hmatrix/kernel/galerkin.hpp"
#include "hmatrix/kernel/laplace.hpp"

namespace penstock::hmatrix {

class LaplaceProblem {
  public:
    explicit LaplaceProblem(const Mesh& mesh);  // throws Error{invalid_argument} that names a triangle without area

    LaplaceCollocation collocation() const noexcept { return {panels_.data(), &centroids_.data()->x}; }
    LaplaceGalerkin galerkin() const noexcept { return {panels_.data()}; }

    std::int64_t unknowns() const noexcept { return static_cast<std::int64_t>(panels_.size()); }
    const std::vector<Panel>& panels() const noexcept { return panels_; }
    const std::vector<Point>& centroids() const noexcept { return centroids_; }
    const std::vector<double>& areas() const noexcept { return areas_; }  // in square metres

    // C / (4 pi eps0) in metres, for the charge density divided by eps0 (V/m) on each triangle of a body at 1 V. Throws
    // Error{invalid_argument} for another number of densities.
    double capacitance_over_4pi_eps0(const std::vector<double>& density) const;

  private:
    std::vector<Panel> panels_;
    std::vector<Point> centroids_;
    std::vector<double> areas_;
};

// The integrals are compiled once, with this library, and not by each who fills a matrix with them.
extern template class FunctorEntries<LaplaceCollocation>;
extern template class FunctorEntries<LaplaceGalerkin>;

}  // namespace penstock::hmatrix
