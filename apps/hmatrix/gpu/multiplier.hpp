// Multiplies batches of one encoding on a GPU. It holds the matrix's tables in GPU memory, collects batches, and
// launches kernels for all collected batches at once.
#pragma once

#include <cstdint>
#include <memory>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/batch_product.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix::gpu {

class Multiplier {
  public:
    virtual ~Multiplier() = default;
    // Begins a product. Requires: y is zero. All work is queued on the stream.
    virtual void begin(const BatchProduct::Operands& vectors, int tiers) = 0;
    // Adds a batch to the next launch. Requires: at most most_collected() batches between launches. forget() drops the
    // collected batches after an error.
    virtual void collect(std::int64_t batch, const BatchView& view) = 0;
    virtual std::int64_t most_collected() const noexcept = 0;
    virtual void forget() noexcept = 0;
    virtual void launch() = 0;
    // Queues the last step after the last launch. Ensures: y is then complete.
    virtual void end() = 0;
};

// Requires: `stream` outlives the result. Throws Error{unsupported} for a matrix that the kernels cannot handle.
std::unique_ptr<Multiplier> multiply_digits(const Context& context, Stream& stream, const MatrixFile& file);
std::unique_ptr<Multiplier> multiply_doubles(const Context& context, Stream& stream, const MatrixFile& file);

}  // namespace penstock::hmatrix::gpu
