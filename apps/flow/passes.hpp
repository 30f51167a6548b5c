// The physics, cell by cell: the same code on the host's threads and on a GPU.
//
// Dry compressible air and a tracer: conservation of mass, momentum, heat (density times potential temperature) and
// tracer, in finite volumes with centred fluxes of fourth order and a fourth difference that damps waves of two cells.
// x and y are periodic; below and above are walls without friction. Each pass writes cells that no other cell of it
// reads, so that results depend on no order. What must stay true: both cells of a face compute the same flux from the
// same numbers, so nothing is lost between them.
#pragma once

#include <cmath>

#include "flow/grid.hpp"

namespace penstock::flow {

constexpr double kGravity = 9.80665;
constexpr double kGasConstant = 287.04;    // of dry air, J/(kg K)
constexpr double kHeatCapacity = 1004.64;  // at constant pressure
constexpr double kSurfacePressure = 100000.0;
constexpr double kTheta = 300.0;   // potential temperature of the reference, K
constexpr double kDamping = 0.05;  // of the shortest wave, in each direction and time step

PENSTOCK_HOST_DEVICE inline double pressure_of(double heat) {
    constexpr double gamma = kHeatCapacity / (kHeatCapacity - kGasConstant);
    return kSurfacePressure * std::pow(kGasConstant * heat / kSurfacePressure, gamma);
}

// Fills the halo of a state, and computes the pressure everywhere. All cells, halo included.
struct Close {
    Grid grid;
    Reference reference;
    State state;

    PENSTOCK_HOST_DEVICE void operator()(int x, int y, int z) const {
        const int from_x = x < 0 ? x + grid.nx : (x >= grid.nx ? x - grid.nx : x);
        const int from_y = y < 0 ? y + grid.ny : (y >= grid.ny ? y - grid.ny : y);
        const int from_z = z < 0 ? -1 - z : (z >= grid.nz ? 2 * grid.nz - 1 - z : z);
        const std::int64_t to = grid.at(x, y, z);
        const std::int64_t from = grid.at(from_x, from_y, from_z);
        if (to != from) {
            for (int q = 0; q < kQuantities; ++q) {
                const double value = state.of[q][from];
                state.of[q][to] = q == kMomentumZ && z != from_z ? -value : value;  // mirrored at walls
            }
        }
        const double heat = reference.heat[from_z] + state.of[kHeat][from];
        state.pressure[to] = pressure_of(heat) - reference.pressure[from_z];
    }
};

// One stage of a Runge-Kutta step: to = base + seconds * tendency(stage). Cells without halo.
struct Advance {
    Grid grid;
    Reference reference;
    State base;
    State stage;
    State to;  // may be base
    double seconds;
    double damping;  // kDamping * spacing / (16 * seconds of a whole step)

    struct Flux {
        double of[kQuantities];
    };

    PENSTOCK_HOST_DEVICE static double middle(const double* values, std::int64_t at, std::int64_t step) {
        constexpr double kTwelfth = 1.0 / 12.0;
        return kTwelfth * (7 * (values[at - step] + values[at]) - (values[at - 2 * step] + values[at + step]));
    }
    PENSTOCK_HOST_DEVICE static double third_difference(const double* values, std::int64_t at, std::int64_t step) {
        return values[at + step] - values[at - 2 * step] + 3 * (values[at - step] - values[at]);
    }
    struct Face {
        std::int64_t at;  // the cell behind it; the one before is at `at - step`
        std::int64_t step;
        int momentum;    // the quantity that crosses it
        double density;  // of the reference there
        double heat;
    };
    PENSTOCK_HOST_DEVICE Flux carried(const Face& face) const {
        Flux found;
        for (int q = 0; q < kQuantities; ++q) found.of[q] = middle(stage.of[q], face.at, face.step);
        found.of[kDensity] += face.density;
        found.of[kHeat] += face.heat;
        const double speed = found.of[face.momentum] / found.of[kDensity];
        for (int q = 0; q < kQuantities; ++q) found.of[q] *= speed;
        found.of[face.momentum] += middle(stage.pressure, face.at, face.step);
        return found;
    }
    PENSTOCK_HOST_DEVICE Flux flux(std::int64_t at, std::int64_t step, int momentum, int z) const {
        Flux found = carried({at, step, momentum, reference.density[z], reference.heat[z]});
        for (int q = 0; q < kQuantities; ++q) found.of[q] += damping * third_difference(stage.of[q], at, step);
        return found;
    }
    // Along z the air gets thin, which is not to be damped: so what a kilogram of the reference has is.
    PENSTOCK_HOST_DEVICE double third_difference_up(int q, std::int64_t at, int z) const {
        const double* const values = stage.of[q] + at;
        const double* const density = reference.density + z;
        if (q == kDensity || q == kHeat) return third_difference(values, 0, 1);
        return reference.face_density[z] * (values[1] / density[1] - values[-2] / density[-2] +
                                            3 * (values[-1] / density[-1] - values[0] / density[0]));
    }
    // Below level z; 0 and nz are walls, through which only pressure acts.
    PENSTOCK_HOST_DEVICE Flux flux_below(std::int64_t at, int z) const {
        Flux found{};
        if (z == 0 || z == grid.nz) {
            found.of[kMomentumZ] = middle(stage.pressure, at, 1);
            return found;
        }
        found = carried({at, 1, kMomentumZ, reference.face_density[z], reference.face_heat[z]});
        for (int q = 0; q < kQuantities; ++q) found.of[q] += damping * third_difference_up(q, at, z);
        return found;
    }
    PENSTOCK_HOST_DEVICE void operator()(int x, int y, int z) const {
        const std::int64_t at = grid.at(x, y, z);
        double change[kQuantities];
        const Flux west = flux(at, grid.step_x(), kMomentumX, z);
        const Flux east = flux(at + grid.step_x(), grid.step_x(), kMomentumX, z);
        for (int q = 0; q < kQuantities; ++q) change[q] = west.of[q] - east.of[q];
        const Flux south = flux(at, grid.step_y(), kMomentumY, z);
        const Flux north = flux(at + grid.step_y(), grid.step_y(), kMomentumY, z);
        for (int q = 0; q < kQuantities; ++q) change[q] += south.of[q] - north.of[q];
        const Flux below = flux_below(at, z);
        const Flux above = flux_below(at + 1, z + 1);
        for (int q = 0; q < kQuantities; ++q) change[q] += below.of[q] - above.of[q];
        const double factor = seconds / grid.spacing_m;
        for (int q = 0; q < kQuantities; ++q) {
            const double weight = q == kMomentumZ ? -seconds * kGravity * stage.of[kDensity][at] : 0.0;
            to.of[q][at] = base.of[q][at] + factor * change[q] + weight;
        }
    }
};

// What is written of the model, in the order of Model::fields().
enum Output : int {
    kOutDensity,
    kOutMomentumX,
    kOutMomentumY,
    kOutMomentumZ,
    kOutHeat,
    kOutTracer,
    kOutU,
    kOutV,
    kOutW,
    kOutTheta,
    kOutPressure,
    kOutTemperature,
    kOutKinetic,
    kOutEnergy,
    kOutVorticityX,
    kOutVorticityY,
    kOutVorticityZ,
    kOutDivergence,
    kOutputs
};

// Computes all that is written. Cells without halo.
struct Diagnose {
    Grid grid;
    Reference reference;
    State state;
    double* to[kOutputs];

    // The speed that belongs to a momentum.
    PENSTOCK_HOST_DEVICE double speed(int momentum, std::int64_t at, int z) const {
        return state.of[momentum][at] / (reference.density[z] + state.of[kDensity][at]);
    }
    // How a speed changes with a metre in x, y and z.
    PENSTOCK_HOST_DEVICE double slope_x(int momentum, std::int64_t at, int z) const {
        const std::int64_t step = grid.step_x();
        return (speed(momentum, at + step, z) - speed(momentum, at - step, z)) / (2 * grid.spacing_m);
    }
    PENSTOCK_HOST_DEVICE double slope_y(int momentum, std::int64_t at, int z) const {
        const std::int64_t step = grid.step_y();
        return (speed(momentum, at + step, z) - speed(momentum, at - step, z)) / (2 * grid.spacing_m);
    }
    PENSTOCK_HOST_DEVICE double slope_z(int momentum, std::int64_t at, int z) const {
        return (speed(momentum, at + 1, z + 1) - speed(momentum, at - 1, z - 1)) / (2 * grid.spacing_m);
    }
    PENSTOCK_HOST_DEVICE void operator()(int x, int y, int z) const {
        const std::int64_t at = grid.at(x, y, z);
        const double density = reference.density[z] + state.of[kDensity][at];
        const double heat = reference.heat[z] + state.of[kHeat][at];
        const double pressure = reference.pressure[z] + state.pressure[at];
        const double u = state.of[kMomentumX][at] / density;
        const double v = state.of[kMomentumY][at] / density;
        const double w = state.of[kMomentumZ][at] / density;
        const double temperature = pressure / (kGasConstant * density);
        const double kinetic = 0.5 * density * (u * u + v * v + w * w);
        const double height = (z + 0.5) * grid.spacing_m;
        to[kOutDensity][at] = density;
        for (int q = kMomentumX; q <= kMomentumZ; ++q) to[q][at] = state.of[q][at];
        to[kOutHeat][at] = heat;
        to[kOutTracer][at] = state.of[kTracer][at] / density;
        to[kOutU][at] = u;
        to[kOutV][at] = v;
        to[kOutW][at] = w;
        to[kOutTheta][at] = heat / density;
        to[kOutPressure][at] = pressure;
        to[kOutTemperature][at] = temperature;
        to[kOutKinetic][at] = kinetic;
        to[kOutEnergy][at] = kinetic + density * ((kHeatCapacity - kGasConstant) * temperature + kGravity * height);
        to[kOutVorticityX][at] = slope_y(kMomentumZ, at, z) - slope_z(kMomentumY, at, z);
        to[kOutVorticityY][at] = slope_z(kMomentumX, at, z) - slope_x(kMomentumZ, at, z);
        to[kOutVorticityZ][at] = slope_x(kMomentumY, at, z) - slope_y(kMomentumX, at, z);
        to[kOutDivergence][at] = slope_x(kMomentumX, at, z) + slope_y(kMomentumY, at, z) + slope_z(kMomentumZ, at, z);
    }
};
static_assert(kOutMomentumX == int{kMomentumX} && kOutMomentumZ == int{kMomentumZ}, "Diagnose copies them by number");

}  // namespace penstock::flow
