// Keywords from Python as the solver's options. A name that is not known raises TypeError.
#pragma once

#include "apps/hmatrix/python/binding.hpp"
#include "hmatrix/assemble/assemble.hpp"
#include "hmatrix/system/stored_system.hpp"

namespace penstock::python {

hmatrix::AssembleOptions assemble_options(const nb::dict& keywords);
hmatrix::SystemOptions system_options(const nb::dict& keywords);
hmatrix::SystemSolve solve_options(const nb::dict& keywords);

}  // namespace penstock::python
