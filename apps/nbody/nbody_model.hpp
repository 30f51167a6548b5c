// A star cluster of bodies that pull each other: a model whose snapshots and restarts a particle code would write.
//
// The bodies lie in memory of the context's device. advance() returns when they are there. The same options give the
// same bits each time on one device, whatever the number of threads, and so does a model that goes on from a restart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nbody/body_engine.hpp"
#include "penstock/restart.hpp"
#include "penstock/snapshot.hpp"

namespace penstock::nbody {

struct ClusterOptions {
    std::int64_t bodies = 1024;
    std::uint64_t seed = 1;     // of positions and velocities: a sphere of Plummer's, at rest as a whole
    double softening = 1.0 / 64;
    double accuracy = 0.02;     // of time steps; smaller is more accurate
    unsigned threads = 0;       // on the host; 0: one a core
};

class Cluster {
  public:
    // Throws Error{invalid_argument} of options that make no sense, Error{out_of_memory}, and Error{unsupported} of a
    // GPU in a build without CUDA.
    Cluster(const Context& context, const ClusterOptions& options);

    std::int64_t bodies() const noexcept { return all_.count; }
    const Bodies& arrays() const noexcept { return all_; }
    const std::uint64_t* ids() const noexcept { return ids_; }
    double time() const noexcept { return static_cast<double>(tick_) * kTick; }
    // By so many of the longest steps, at the end of which all bodies are at the same time.
    void advance(std::int64_t longest_steps);
    // Kinetic and potential energy, in double precision on the host.
    double energy() const;

    // All that the next step depends on, as fields of a restart; after a read call resume().
    void describe(Restart& restart);
    void resume(const Restart& restart);
    // The bits of all of it, in memory of the host.
    std::vector<std::byte> state() const;
    // A file of GADGET-4's layout, under a name that readers see when it is whole.
    SnapshotFacts write_snapshot(const std::string& name, bool durable = false) const;

  private:
    template <typename Number>
    std::vector<Number> on_host(const Number* values, std::int64_t count) const;
    template <typename Number>
    void upload(Number* to, const std::vector<Number>& values);
    void place_arrays();
    void fill();

    Context context_;
    ClusterOptions options_;
    Buffer memory_;
    Bodies all_;
    std::uint64_t* ids_ = nullptr;
    std::int64_t tick_ = 0;
    std::unique_ptr<BodyEngine> engine_;
};

}  // namespace penstock::nbody
