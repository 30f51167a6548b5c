// The module penstock_bench._measure: native code that measures Penstock and what it is compared with. Its functions
// take contexts, files and memory of penstock._core.
#include "measure.hpp"
#include "python/shared/join.hpp"

NB_MODULE(_measure, module) {
    namespace python = penstock::python;
    python::join_core("penstock_bench._measure");
    python::bind_baseline(module);
    python::bind_load(module);
    python::bind_planning(module);
    python::bind_storm(module);
}
