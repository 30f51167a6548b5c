// An attribute of a snapshot as the tree of HDF5 has it. A pure function.
#pragma once

#include "formats/create/hdf5/tree.hpp"
#include "penstock/snapshot.hpp"

namespace penstock::snapshot {

// Throws Error{invalid_argument}: the values do not fit type and shape, or the type is none.
formats::Hdf5Attribute tree_attribute(const SnapshotAttribute& attribute);

}  // namespace penstock::snapshot
