// The Krylov methods, each a coroutine over one right-hand side (see column.hpp for what they promise).
//
// All precondition from the right, so the residual they watch is that of A x = b itself.
#pragma once

#include "hmatrix/solve/methods/column.hpp"

namespace penstock::hmatrix {

// Two products an iteration; the shadow residual is the first residual; the residual is looked at once an iteration.
// What HACApK runs, with named breakdowns.
Task bicgstab(Column& column);

// One product an iteration; each new direction's image is orthogonal to those of the last `restart` (8) directions.
Task gcr(Column& column);

// One product an iteration. `fgmres` lets the preconditioner change from one iteration to the next: an inner GMRES with
// the surrogate where there is one, preconditioned in its turn. Both keep one cycle's iterate hidden until it ends.
Task gmres(Column& column);
Task fgmres(Column& column);

// One product an iteration, 2 s + 3 vectors and s that all right-hand sides share: IDR(s) with vectors kept orthogonal
// to the shadow space as they are made (van Gijzen and Sonneveld, ACM Trans. Math. Software 38(1), 2011).
Task idr(Column& column);
// Its shadow space: `s` orthonormal vectors from a fixed seed.
std::shared_ptr<double> idr_shadow(VectorSpace& space, std::int64_t s);

}  // namespace penstock::hmatrix
