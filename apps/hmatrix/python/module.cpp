// The module penstock.hmatrix._hmatrix: the H-matrix solver in Python. Its functions take contexts of penstock._core.
#include "hmatrix/python/arrays.hpp"
#include "python/shared/join.hpp"

NB_MODULE(_hmatrix, module) {
    namespace python = penstock::python;
    python::join_core("penstock.hmatrix._hmatrix");
    python::bind_geometry(module);
    python::bind_system(module);
}
