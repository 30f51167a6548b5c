// The Krylov methods. Each is a coroutine over one right-hand side; column.hpp says what it must guarantee.
//
// All methods precondition from the right, so the residual that they watch is that of A x = b itself.
#pragma once

#include "hmatrix/solve/methods/column.hpp"

namespace penstock::hmatrix {

// BiCGSTAB as HACApK runs it, with named breakdowns. Two products an iteration. The shadow residual is the first
// residual, and the method tests the residual once an iteration.
Task bicgstab(Column& column);

// Truncated GCR. One product an iteration; the image of each new direction is orthogonal to those of the last `restart`
// (8) directions.
Task gcr(Column& column);

// One product an iteration. With `fgmres` the preconditioner may change from one iteration to the next. If there is a
// surrogate, it is an inner GMRES with the surrogate, which uses the preconditioner in turn. Within a cycle both
// methods keep their iterate outside x.
Task gmres(Column& column);
Task fgmres(Column& column);

// IDR(s) with vectors that are made orthogonal to the shadow space (van Gijzen and Sonneveld, ACM Trans. Math. Software
// 38(1), 2011). One product an iteration. Memory: 2 s + 3 vectors, and s that all right-hand sides share.
Task idr(Column& column);
// The shadow space of idr(): `s` orthonormal vectors from a fixed seed.
std::shared_ptr<double> idr_shadow(VectorSpace& space, std::int64_t s);

}  // namespace penstock::hmatrix
