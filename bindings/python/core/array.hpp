// What an Array of Python holds, in C: made without Python's help, and exported by the buffer protocol.
//
// Reading a row and handing it to NumPy takes a few microseconds. An object made by Python code, and a dict that
// describes it, took a third of that. penstock._arrays.array.Array is a class of Python over it, and has the rest.
#pragma once

#include "core.hpp"

namespace penstock::python {

struct ArrayContent {
    nb::object buffer;
    nb::handle dtype;
    nb::object shape, strides;  // tuples
    std::uint64_t offset_bytes = 0;
};

// An Array of this class, which is one over ArrayBase: it lies in the buffer. Requires: the GIL.
nb::object make_array(nb::handle array_class, ArrayContent content);

}  // namespace penstock::python
