// Vectors of a Krylov method, and the operator that multiplies them. These classes separate solvers from the memory
// they work in.
//
// Solvers are written once against these two classes. A vector is a pointer to size() doubles in the implementation's
// memory (host or GPU). A block of vectors is column-major, with size() doubles a column. Requires: one thread makes
// all calls. Ensures: results that a call returns to the host are complete when it returns.
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
    // Whether repeated calls, and products with these vectors, give the same bits on every run.
    virtual bool repeatable() const noexcept = 0;
    // Allocates `count` vectors of zeros; the returned owner frees them. Throws Error{out_of_memory}.
    virtual std::shared_ptr<double> allocate(std::int64_t count) = 0;
    virtual void upload(std::span<const double> host, double* to) = 0;
    virtual void download(const double* from, std::span<double> host) = 0;
    virtual void copy(const double* from, double* to) = 0;
    virtual void scale(double factor, double* x) = 0;
    virtual void add(double factor, const double* x, double* y) = 0;  // y += factor * x
    virtual double dot(const double* x, const double* y) = 0;
    // result[i] = dot product of basis column i and x, for `result.size()` columns, in one pass over the basis.
    virtual void dots(const double* basis, const double* x, std::span<double> result) = 0;
    // y += sum of factors[i] * basis column i, in one pass over the basis.
    virtual void combine(const double* basis, std::span<const double> factors, double* y) = 0;
};

// `workers`: null means threads of its own. Requires: the workers are idle during a vector operation and outlive the
// vectors. Ensures: the same bits on every run and for every number of threads.
std::unique_ptr<VectorSpace> make_host_vectors(std::int64_t size, Workers* workers = nullptr);

// y = A x to a requested accuracy. For a low accuracy, a stored matrix may read only part of its bytes.
class LinearOperator {
  public:
    virtual ~LinearOperator() = default;
    // Ensures, for each of the `count` columns of x and y: ||y - A x|| <= accuracy * ||A|| ||x|| (Frobenius norm of A).
    // 0 means as exact as the matrix is stored. Requires: x and y are vectors of the solver's VectorSpace and do not
    // overlap.
    virtual void apply(const double* x, double* y, std::int64_t count, double accuracy) = 0;
};

}  // namespace penstock::hmatrix
