// Options of the solver, made of keywords from Python. A keyword that the function does not know raises TypeError.
#pragma once

#include "hmatrix/assemble/assemble.hpp"
#include "hmatrix/python/arrays.hpp"
#include "hmatrix/system/stored_system.hpp"

namespace penstock::python {

hmatrix::AssembleOptions assemble_options(const nb::dict& keywords);
hmatrix::SystemOptions system_options(const nb::dict& keywords);
hmatrix::SystemSolve solve_options(const nb::dict& keywords);

}  // namespace penstock::python
