// The box of cells, and which array of a state is what. PODs for nvcc (C++17) and g++.
//
// Arrays have the order of Fortran's (z, x, y), as weather models have it: z is nearest in memory. Two cells of halo
// are on each side of each dimension.
#pragma once

#include <cstdint>

#include "penstock/host_device.hpp"

namespace penstock::flow {

constexpr int kHalo = 2;

struct Grid {
    int nx = 0;
    int ny = 0;
    int nz = 0;
    double spacing_m = 0;  // of cells in all three directions

    PENSTOCK_HOST_DEVICE std::int64_t step_x() const { return nz + 2 * kHalo; }
    PENSTOCK_HOST_DEVICE std::int64_t step_y() const { return step_x() * (nx + 2 * kHalo); }
    PENSTOCK_HOST_DEVICE std::int64_t cells() const { return step_y() * (ny + 2 * kHalo); }  // halo included
    PENSTOCK_HOST_DEVICE std::int64_t at(int x, int y, int z) const {
        return (y + kHalo) * step_y() + (x + kHalo) * step_x() + z + kHalo;
    }
};

// Prognostic quantities. Density and heat are differences from the reference, so that air at rest stays at rest.
enum Quantity : int { kDensity, kMomentumX, kMomentumY, kMomentumZ, kHeat, kTracer, kQuantities };

struct State {
    double* of[kQuantities];
    double* pressure;  // difference from the reference
};

// Air at rest with one potential temperature: what it has at each level, and at the faces below and above each level.
struct Reference {
    const double* density;  // of levels; in the halo it is mirrored
    const double* heat;     // density times potential temperature
    const double* pressure;
    const double* face_density;
    const double* face_heat;
};

}  // namespace penstock::flow
