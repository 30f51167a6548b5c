// What multiplies batches of one encoding on a GPU: tables of the matrix there, and kernels. Collects batches, and
// starts what does all of them.
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
    // A new product, whose y is zero. All is queued on the stream.
    virtual void begin(const BatchProduct::Operands& vectors, int tiers) = 0;
    // At most most_collected() between launches; forget() those of a product that an error ended.
    virtual void collect(std::int64_t batch, const BatchView& view) = 0;
    virtual std::int64_t most_collected() const noexcept = 0;
    virtual void forget() noexcept = 0;
    virtual void launch() = 0;
    // Behind the last launch: y is as it should be.
    virtual void end() = 0;
};

// `stream` must outlive it. Throws Error{unsupported} for a matrix that the kernels cannot do.
std::unique_ptr<Multiplier> multiply_digits(const Context& context, Stream& stream, const MatrixFile& file);
std::unique_ptr<Multiplier> multiply_doubles(const Context& context, Stream& stream, const MatrixFile& file);

}  // namespace penstock::hmatrix::gpu
