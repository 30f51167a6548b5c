// Types and attributes of a snapshot as the tree of HDF5 has them. Pure functions.
#pragma once

#include <string>

#include "formats/create/hdf5/tree.hpp"
#include "penstock/snapshot.hpp"

namespace penstock::snapshot {

// Whether there is a type of that name: of numbers, or "S" and a number of bytes: text of that length.
bool snapshot_type(const std::string& name, formats::ElementType& type);

// Throws Error{invalid_argument}: the values do not fit type and shape, or the type is none.
formats::Hdf5Attribute tree_attribute(const SnapshotAttribute& attribute);

}  // namespace penstock::snapshot
