// The list of the sources of a virtual dataset, as an object of the global heap (HDF5 file format specification,
// "Global Heap Block for Virtual Datasets"). A pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "formats/create/hdf5/tree.hpp"

namespace penstock::formats {

// Bytes of the block. Requires: the dataset has sources and a dimension.
std::string virtual_block(const Hdf5Dataset& dataset);

// The checksum of HDF5's newer structures: lookup3 of Bob Jenkins, begun with 0.
std::uint32_t lookup3(std::span<const std::byte> bytes);

}  // namespace penstock::formats
