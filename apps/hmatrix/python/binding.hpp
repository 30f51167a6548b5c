// The H-matrix solver in Python: what its files share. The typed and documented face is python/penstock/hmatrix.
//
// Work runs on the calling thread and its own workers, without the GIL; progress is told on the calling thread, which
// then takes the GIL, heeds signals and calls Python.
#pragma once

#include <nanobind/ndarray.h>

#include <span>
#include <utility>
#include <vector>

#include "bindings/python/binding.hpp"
#include "hmatrix/geometry/mesh.hpp"

namespace penstock::python {

// C-contiguous arrays in host memory: (n,) or (columns, n).
using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;

inline std::span<const double> values_of(const Doubles& array) { return {array.data(), array.size()}; }

// A numpy array that owns these values.
template <class Value>
nb::ndarray<nb::numpy, Value> to_numpy(std::vector<Value> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<Value>(std::move(values));
    const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<Value>*>(pointer); });
    return nb::ndarray<nb::numpy, Value>(kept->data(), shape.size(), shape.data(), owner);
}

// Of (n, 3) corners and (m, 3) numbers of corners. Throws Error{invalid_argument} for numbers of corners that are not
// there.
hmatrix::Mesh mesh_of(const Doubles& vertices, const Integers& triangles);

void bind_hmatrix_geometry(nb::module_& module);
void bind_hmatrix_system(nb::module_& module);

}  // namespace penstock::python
