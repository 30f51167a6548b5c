// Makers of leaves. This class separates the assembly loop from the device that computes the numbers: the host's cores
// or a GPU.
//
// A maker gets all leaves at once. The loop then asks for them batch by batch, in order, and the maker may work ahead
// as far as its memory allows. Workers of the host hand each leaf over, and encode it at once.
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

// The leaves to make. Requires: everything that this struct refers to outlives the maker.
struct LeafWork {
    std::span<const Leaf> leaves;
    std::span<const std::size_t> batches;  // index of the first leaf of each batch, and the end
    std::span<const std::int64_t> order;   // position in the cluster tree -> index for `entries`
    const Entries* entries = nullptr;
    AcaOptions aca;              // the maker sets from_last_row for each leaf
    std::int64_t gpu_bytes = 0;  // approximate memory on the device for factors in progress
};

// HACApK's rule: the approximation begins at the side that faces the other cluster.
inline bool from_last_row(const Leaf& leaf) noexcept { return leaf.row <= leaf.column; }

class LeafMaker {
  public:
    // `leaf` is an index into LeafWork::leaves. For a dense leaf, factors.u holds its entries.
    using Take = std::function<void(int worker, std::int64_t leaf, AcaResult made)>;

    virtual ~LeafMaker() = default;
    // Makes the leaves of a batch and passes each to `take` once, from any worker and in any order. Requires: calls
    // follow the order of the batches. Throws Error{invalid_argument} for entries that are not finite, and other Errors
    // as approximate() does.
    virtual void make(std::int64_t batch, const Take& take) = 0;
    // Leaves that the GPU left to the host, because its memory was too small for their rank or an entry was not finite.
    virtual std::int64_t left_to_host() const noexcept { return 0; }
};

// A maker that uses all workers of the host.
std::unique_ptr<LeafMaker> make_host_leaf_maker(Workers& workers, const LeafWork& work);
// Makes one leaf on the calling thread.
AcaResult make_leaf(const LeafWork& work, const Leaf& leaf);

// Entries that a GPU can evaluate too; see gpu/functor_on_gpu.hpp.
class GpuEntries {
  public:
    virtual ~GpuEntries() = default;
    // A maker on the context's GPU. Throws Error{unsupported} if the entries were not compiled for a GPU.
    virtual std::unique_ptr<LeafMaker> leaf_maker(const Context& context, Workers& workers,
                                                  const LeafWork& work) const = 0;
};

}  // namespace penstock::hmatrix
