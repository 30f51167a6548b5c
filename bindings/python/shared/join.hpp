// How the Python modules meet. penstock._core makes the Python classes of Context, Buffer, File and Transfer, and turns
// the C++ Error into penstock.Error. The other modules take and return objects of these classes, so each joins _core
// before it defines anything.
//
// nanobind finds a class by its C++ name in a domain. It cannot see that another build gave the class other members, so
// the modules compare that.
#pragma once

#include <string>

namespace penstock::python {

// Returns the version, and the sizes of the classes that cross modules. Modules of one build say the same.
std::string shared_layout();

// Imports penstock._core. Raises ImportError if it is of another build than `module`. Requires: the GIL.
void join_core(const char* module);

}  // namespace penstock::python
