// A warm bubble that rises in a box of air: a model that is real enough to be written while it runs.
//
// The model lies in memory of the context's device, that of the host where it is emulated. advance() moves it by whole
// time steps and computes its fields, and returns when they are there. Fields stay where they are: a history takes them
// between two calls. The same options give the same bits each time on one device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "flow/engine.hpp"

namespace penstock::flow {

struct ModelOptions {
    int nx = 64;  // cells; each at least 4
    int ny = 64;
    int nz = 32;
    double height_m = 10000;      // of the box; cells are cubes
    double wind = 10;             // in x, m/s
    double bubble_kelvin = 3;     // warmer than the air around it; 0: only its tracer
    double bubble_radius = 0.25;  // of the height
    int threads = 0;              // on the host; 0: one a core
};

struct FieldInfo {
    const char* name;
    const char* long_name;
    const char* standard_name;  // of CF; empty: none
    const char* units;
};

class Model {
  public:
    // Throws Error{invalid_argument} of a box that makes no sense, Error{out_of_memory}, and Error{unsupported} of a
    // GPU in a build without CUDA.
    Model(const Context& context, const ModelOptions& options);

    static std::span<const FieldInfo> fields() noexcept;
    const Grid& grid() const noexcept { return grid_; }
    double time_step() const noexcept { return time_step_; }  // seconds
    double time() const noexcept { return time_step_ * static_cast<double>(steps_); }

    // Back to time 0, with its fields.
    void restart();
    void advance(int steps);
    // Where advance() queues its work: a cudaStream_t as a number, 0 on the host, and of the default stream.
    std::uintptr_t stream() const noexcept { return engine_->stream(); }
    // advance() takes the default stream of the GPU, or again one of its own. On the host nothing changes.
    void use_default_stream(bool use) noexcept { engine_->use_default_stream(use); }
    // In memory of the device, halo included; the halo of fields is not set. Requires: number < kOutputs.
    const double* field(int number) const noexcept { return outputs_[number]; }
    // Copies a field to memory of the host. Requires: room for grid().cells() values.
    void copy_field(int number, double* to);

  private:
    void make_reference();
    void fill_state();
    void upload(double* to, const std::vector<double>& values);
    void diagnose();

    Context context_;
    ModelOptions options_;
    Grid grid_;
    double time_step_ = 0;
    std::int64_t steps_ = 0;
    Buffer memory_;
    Reference reference_{};
    std::vector<double> density_;  // of the reference, at each level
    std::vector<double> heat_;
    State states_[3]{};
    double* outputs_[kOutputs]{};
    std::unique_ptr<Engine> engine_;
};

}  // namespace penstock::flow
