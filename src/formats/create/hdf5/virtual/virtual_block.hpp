// The list of the sources of a virtual dataset, as an object of the global heap (HDF5 file format specification,
// "Global Heap Block for Virtual Datasets"). A pure function.
#pragma once

#include <string>

#include "formats/create/hdf5/tree.hpp"

namespace penstock::formats {

// Bytes of the block. Requires: the dataset has sources and a dimension.
std::string virtual_block(const Hdf5Dataset& dataset);

}  // namespace penstock::formats
