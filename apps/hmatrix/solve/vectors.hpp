// Vectors of a Krylov method and the operator they meet: the seam between solvers and the memory they work in.
//
// Solvers are written once against these two classes. A vector is a pointer to size() doubles in the memory of the
// implementation (host memory, or a GPU's); a block of vectors is column-major, size() doubles a column. All calls are
// made by one thread, and results that are returned to the host are complete when the call returns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "hmatrix/threads/workers.hpp"

namespace penstock::hmatrix {

class VectorSpace {
  public:
    virtual ~VectorSpace() = default;
    virtual std::int64_t size() const noexcept = 0;
    // The same calls, and products of an operator on these vectors, have the same bits on every run.
    virtual bool repeatable() const noexcept = 0;
    // `count` vectors, zeroed; freed with the owner. Throws Error{out_of_memory}.
    virtual std::shared_ptr<double> allocate(std::int64_t count) = 0;
    virtual void upload(std::span<const double> host, double* to) = 0;
    virtual void download(const double* from, std::span<double> host) = 0;
    virtual void copy(const double* from, double* to) = 0;
    virtual void scale(double factor, double* x) = 0;
    virtual void add(double factor, const double* x, double* y) = 0;  // y += factor * x
    virtual double dot(const double* x, const double* y) = 0;
    // result[i] = basis column i . x, for `result.size()` columns; one pass over the basis.
    virtual void dots(const double* basis, const double* x, std::span<double> result) = 0;
    // y += sum of factors[i] * basis column i; one pass over the basis.
    virtual void combine(const double* basis, std::span<const double> factors, double* y) = 0;
};

// `workers`: threads that are not busy while a vector operation runs, and outlive the vectors; null: threads of their
// own. Results are the same bits on every run and for every number of threads.
std::unique_ptr<VectorSpace> make_host_vectors(std::int64_t size, Workers* workers = nullptr);

// y = A x, to an accuracy asked for: a stored matrix may read less of itself when little is needed.
class LinearOperator {
  public:
    virtual ~LinearOperator() = default;
    // For each of `count` columns of x and y: ||y - A x|| <= accuracy * ||A|| ||x|| (Frobenius), 0: as exact as it is
    // stored. x and y are vectors of the VectorSpace that solves, and do not overlap.
    virtual void apply(const double* x, double* y, std::int64_t count, double accuracy) = 0;
};

}  // namespace penstock::hmatrix
