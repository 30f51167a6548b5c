// What the files of the module penstock.hmatrix._hmatrix share: arrays of NumPy as the solver's values. The typed and
// documented interface is python/penstock/hmatrix.
//
// The calling thread works without the GIL, and so do the threads that it starts. The calling thread tells progress: it
// takes the GIL, lets Python's signal handlers run, and calls the user's function.
#pragma once

#include <nanobind/ndarray.h>

#include <span>
#include <utility>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"
#include "python/shared/binding.hpp"

namespace penstock::python {

// C-contiguous arrays in host memory, of shape (n,) or (columns, n).
using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;

inline std::span<const double> values_of(const Doubles& array) { return {array.data(), array.size()}; }

// Returns a NumPy array that owns the values.
template <class Value>
nb::ndarray<nb::numpy, Value> to_numpy(std::vector<Value> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<Value>(std::move(values));
    const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<Value>*>(pointer); });
    return nb::ndarray<nb::numpy, Value>(kept->data(), shape.size(), shape.data(), owner);
}

// Returns the mesh of (n, 3) corners and (m, 3) numbers of corners. Throws Error{invalid_argument} if a number names a
// corner that is not in `vertices`.
hmatrix::Mesh mesh_of(const Doubles& vertices, const Integers& triangles);

void bind_geometry(nb::module_& module);
void bind_system(nb::module_& module);

}  // namespace penstock::python
