// See model.hpp.
#include "flow/model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "penstock/device.hpp"

namespace penstock::flow {
namespace {

constexpr int kLeastCells = 4;       // a flux reaches over four cells
constexpr int kMostCells = 1 << 14;  // of a side
constexpr double kCourant = 0.45;    // of sound; three directions are not split
constexpr double kFastest = 30;      // m/s that a bubble may add
constexpr std::array<FieldInfo, kOutputs> kFields{{
    {"DENS", "density", "air_density", "kg m-3"},
    {"MOMX", "momentum in x", "", "kg m-2 s-1"},
    {"MOMY", "momentum in y", "", "kg m-2 s-1"},
    {"MOMZ", "momentum in z", "", "kg m-2 s-1"},
    {"RHOT", "density times potential temperature", "", "kg m-3 K"},
    {"QTRC", "mass of tracer in that of air", "", "1"},
    {"U", "velocity in x", "x_wind", "m s-1"},
    {"V", "velocity in y", "y_wind", "m s-1"},
    {"W", "velocity in z", "upward_air_velocity", "m s-1"},
    {"PT", "potential temperature", "air_potential_temperature", "K"},
    {"PRES", "pressure", "air_pressure", "Pa"},
    {"T", "temperature", "air_temperature", "K"},
    {"ENGK", "kinetic energy", "", "J m-3"},
    {"ENGT", "total energy", "", "J m-3"},
    {"VORX", "vorticity around x", "", "s-1"},
    {"VORY", "vorticity around y", "", "s-1"},
    {"VORZ", "vorticity around z", "atmosphere_upward_relative_vorticity", "s-1"},
    {"DIV", "divergence of the velocity", "", "s-1"},
}};

Error wrong_box(const std::string& cause, const std::string& advice) {
    return Error(ErrorCode::invalid_argument, "make a flow model", cause, advice);
}

Grid checked(const ModelOptions& options) {
    const auto [fewest, most] = std::minmax({options.nx, options.ny, options.nz});
    if (fewest < kLeastCells || most > kMostCells) {
        throw wrong_box("a side of the box has " + std::to_string(fewest < kLeastCells ? fewest : most) + " cells",
                        "give 4 to 16384 cells to each side");
    }
    const bool finite = std::isfinite(options.wind) && std::isfinite(options.bubble_kelvin);
    if (!(options.height_m > 0 && options.height_m <= 15000)) {
        throw wrong_box("the box is " + std::to_string(options.height_m) + " m high", "give up to 15000 m");
    }
    if (!finite || std::abs(options.wind) > 200 || std::abs(options.bubble_kelvin) > 50 ||
        !(options.bubble_radius > 0 && options.bubble_radius <= 0.5)) {
        throw wrong_box("the wind or the bubble is not of this world",
                        "give at most 200 m/s, 50 K, and half the height as radius");
    }
    return {options.nx, options.ny, options.nz, options.height_m / options.nz};
}

// The pressure as a part of that of the surface, to the power of R / cp.
double exner(double height) { return 1 - kGravity * height / (kHeatCapacity * kTheta); }
double heat_at(double height) {
    return kSurfacePressure / kGasConstant * std::pow(exner(height), kHeatCapacity / kGasConstant - 1);
}
double fastest(double wind) {
    const double gamma = kHeatCapacity / (kHeatCapacity - kGasConstant);
    return std::sqrt(gamma * kGasConstant * kTheta) + std::abs(wind) + kFastest;
}

}  // namespace

std::span<const FieldInfo> Model::fields() noexcept { return kFields; }

Model::Model(const Context& context, const ModelOptions& options)
    : context_(context), options_(options), grid_(checked(options)) {
    time_step_ = kCourant * grid_.spacing_m / fastest(options.wind);
    const std::int64_t cells = grid_.cells();
    const int arrays = 3 * (kQuantities + 1) + kOutputs;
    const std::int64_t levels = 5 * (std::int64_t{grid_.nz} + 2 * kHalo);
    engine_ = context.device().info().emulated ? make_host_engine(options.threads) : make_gpu_engine(context);
    const std::int64_t doubles = arrays * cells + levels;
    memory_ = context.allocate(static_cast<std::uint64_t>(doubles) * sizeof(double), engine_->memory());
    auto* next = static_cast<double*>(memory_.data());
    const auto take = [&next](std::int64_t count) {
        double* const mine = next;
        next += count;
        return mine;
    };
    for (State& state : states_) {
        for (double*& one : state.of) one = take(cells);
        state.pressure = take(cells);
    }
    for (double*& one : outputs_) one = take(cells);
    const std::int64_t most = grid_.nz + 2 * kHalo;
    reference_ = {take(most) + kHalo, take(most), take(most), take(most), take(most)};
    const std::vector<double> zeros(static_cast<std::size_t>(cells));
    for (int array = 0; array < arrays; ++array) engine_->upload(states_[0].of[0] + array * cells, zeros.data(), cells);
    make_reference();
    restart();
}

void Model::upload(double* to, const std::vector<double>& values) {
    engine_->upload(to, values.data(), static_cast<std::int64_t>(values.size()));
}

void Model::make_reference() {
    std::vector<double> pressure;
    std::vector<double> face_density;
    std::vector<double> face_heat;
    for (int z = 0; z < grid_.nz; ++z) {
        heat_.push_back(heat_at((z + 0.5) * grid_.spacing_m));
        density_.push_back(heat_.back() / kTheta);
        pressure.push_back(pressure_of(heat_.back()));
    }
    for (int z = 0; z <= grid_.nz; ++z) {
        face_heat.push_back(heat_at(z * grid_.spacing_m));
        face_density.push_back(face_heat.back() / kTheta);
    }
    std::vector<double> around{density_[1], density_[0]};
    around.insert(around.end(), density_.begin(), density_.end());
    around.insert(around.end(), {density_[grid_.nz - 1], density_[grid_.nz - 2]});
    upload(const_cast<double*>(reference_.density) - kHalo, around);
    upload(const_cast<double*>(reference_.heat), heat_);
    upload(const_cast<double*>(reference_.pressure), pressure);
    upload(const_cast<double*>(reference_.face_density), face_density);
    upload(const_cast<double*>(reference_.face_heat), face_heat);
}

// The bubble has the pressure of the air around it, so its heat is the reference's and its density is lower.
void Model::fill_state() {
    const auto cells = static_cast<std::size_t>(grid_.cells());
    std::vector<double> density(cells);
    std::vector<double> momentum(cells);
    std::vector<double> tracer(cells);
    for (int y = 0; y < grid_.ny; ++y) {
        for (int x = 0; x < grid_.nx; ++x) {
            for (int z = 0; z < grid_.nz; ++z) {
                const double radius = options_.bubble_radius * grid_.nz;
                const double away = std::hypot(x + 0.5 - 0.5 * grid_.nx, y + 0.5 - 0.5 * grid_.ny,
                                               z + 0.5 - std::max(0.25 * grid_.nz, radius)) /
                                    radius;
                const double shape = away < 1 ? std::pow(std::cos(0.5 * std::numbers::pi * away), 4) : 0;
                const auto at = static_cast<std::size_t>(grid_.at(x, y, z));
                const double all = heat_[z] / (kTheta + options_.bubble_kelvin * shape);
                density[at] = all - density_[z];
                momentum[at] = all * options_.wind;
                tracer[at] = all * shape;
            }
        }
    }
    upload(states_[0].of[kDensity], density);
    upload(states_[0].of[kMomentumX], momentum);
    upload(states_[0].of[kTracer], tracer);
    std::fill(tracer.begin(), tracer.end(), 0.0);
    for (const int q : {kMomentumY, kMomentumZ, kHeat}) upload(states_[0].of[q], tracer);
}

void Model::restart() {
    fill_state();
    steps_ = 0;
    engine_->run(Close{grid_, reference_, states_[0]});
    diagnose();
}

// The scheme of Wicker and Skamarock: stages of a third, a half and a whole step, each from the begin of the step.
void Model::advance(int steps) {
    if (steps < 1) throw Error(ErrorCode::invalid_argument, "advance the flow model", "fewer than one step");
    const double damping = kDamping * grid_.spacing_m / (16 * time_step_);
    for (int step = 0; step < steps; ++step) {
        int from = 0;
        for (const int parts : {3, 2, 1}) {
            const int to = parts == 3 ? 1 : (parts == 2 ? 2 : 0);
            engine_->run(
                Advance{grid_, reference_, states_[0], states_[from], states_[to], time_step_ / parts, damping});
            engine_->run(Close{grid_, reference_, states_[to]});
            from = to;
        }
    }
    steps_ += steps;
    diagnose();
}

void Model::diagnose() {
    Diagnose pass{grid_, reference_, states_[0], {}};
    std::copy(std::begin(outputs_), std::end(outputs_), pass.to);
    engine_->run(pass);
    engine_->wait();
}

void Model::copy_field(int number, double* to) { engine_->download(to, outputs_[number], grid_.cells()); }

}  // namespace penstock::flow
