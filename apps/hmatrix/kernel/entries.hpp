// What fills a matrix. This class separates the H-matrix from the physics.
//
// An Entries object returns one number for a row and a column, both in the numbering of the mesh. Many threads call it
// at once. Requires: a call does not change the object. An object wraps a functor, or a C++ or Python function of the
// user. A functor that also runs on a GPU is a POD with a __host__ __device__ call operator (see laplace.hpp and
// gpu/functor_on_gpu.hpp).
#pragma once

#include <cstdint>
#include <span>

namespace penstock::hmatrix {

class Entries {
  public:
    virtual ~Entries() = default;
    // out[i] = A(row, columns[i]).
    virtual void row(std::int64_t row, std::span<const std::int64_t> columns, double* out) const = 0;
    // out[i] = A(rows[i], column).
    virtual void column(std::span<const std::int64_t> rows, std::int64_t column, double* out) const = 0;
};

// Turns a functor `double operator()(std::int64_t row, std::int64_t column) const` into Entries.
template <class Functor>
class FunctorEntries final : public Entries {
  public:
    explicit FunctorEntries(Functor functor) : functor_(functor) {}
    void row(std::int64_t row, std::span<const std::int64_t> columns, double* out) const override {
        for (std::size_t i = 0; i < columns.size(); ++i) out[i] = functor_(row, columns[i]);
    }
    void column(std::span<const std::int64_t> rows, std::int64_t column, double* out) const override {
        for (std::size_t i = 0; i < rows.size(); ++i) out[i] = functor_(rows[i], column);
    }

  private:
    Functor functor_;
};

}  // namespace penstock::hmatrix
