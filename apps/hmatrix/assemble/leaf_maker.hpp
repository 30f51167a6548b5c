// Who makes leaves: the seam between the assembly loop and what works out its numbers, the host's cores or a GPU.
//
// A maker is given all leaves at once and asked for them batch by batch, in order; it may work ahead as far as its own
// memory goes. What it makes it hands over from the host's workers, which encode it right there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hmatrix/build/aca.hpp"
#include "hmatrix/kernel/entries.hpp"
#include "hmatrix/threads/workers.hpp"
#include "hmatrix/tree/blocks.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// What is to be made. All of it outlives the maker.
struct LeafWork {
    std::span<const Leaf> leaves;
    std::span<const std::size_t> batches;  // where each begins, and the end
    std::span<const std::int64_t> order;   // of the unknowns: of the place in a leaf, the number that entries know
    const Entries* entries = nullptr;
    AcaOptions aca;                        // from_last_row is each leaf's own
    std::int64_t gpu_bytes = 0;            // of the device's memory, about, for factors at a time
};

// HACApK's: from the side that faces the other cluster.
inline bool from_last_row(const Leaf& leaf) noexcept { return leaf.row <= leaf.column; }

class LeafMaker {
  public:
    // `leaf` is its number in LeafWork::leaves. A dense leaf has entries in factors.u, and all of them evaluated.
    using Take = std::function<void(int worker, std::int64_t leaf, AcaResult made)>;

    virtual ~LeafMaker() = default;
    // Makes the leaves of a batch and gives each to `take` once, from any worker and in any order. Batches are asked
    // for in their order. Throws Error{invalid_argument} for entries that are not finite, and as approximate() does.
    virtual void make(std::int64_t batch, const Take& take) = 0;
    // Leaves that it was given for a GPU and left to the host: no room for their rank, or entries that are not finite.
    virtual std::int64_t left_to_host() const noexcept { return 0; }
};

// On the host, by all workers.
std::unique_ptr<LeafMaker> make_host_leaf_maker(Workers& workers, const LeafWork& work);
// One leaf, on this thread.
AcaResult make_leaf(const LeafWork& work, const Leaf& leaf);

// Entries that a GPU can work out too; see gpu/functor_on_gpu.hpp.
class GpuEntries {
  public:
    virtual ~GpuEntries() = default;
    // On the context's GPU. Throws Error{unsupported} where nothing was compiled for it.
    virtual std::unique_ptr<LeafMaker> leaf_maker(const Context& context, Workers& workers,
                                                  const LeafWork& work) const = 0;
};

}  // namespace penstock::hmatrix
