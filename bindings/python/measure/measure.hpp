// What the files of the module penstock_bench._measure share.
#pragma once

#include "python/shared/binding.hpp"

namespace penstock::python {

void bind_baseline(nb::module_& module);
void bind_load(nb::module_& module);
void bind_planning(nb::module_& module);
void bind_storm(nb::module_& module);

}  // namespace penstock::python
