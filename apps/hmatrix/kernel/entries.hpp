// What fills a matrix: the seam between the H-matrix and the physics.
//
// An Entries object gives one number for a row and a column, both in the numbering of the mesh. It is called from many
// threads at once and must not change: a functor, or a user's own C++ or Python function. Functors that also run on a
// GPU are PODs with a __host__ __device__ call operator (see laplace.hpp, and gpu/functor_on_gpu.hpp).
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

// A functor `double operator()(std::int64_t row, std::int64_t column) const` as Entries.
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
