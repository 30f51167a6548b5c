// HDF5 and netCDF-4 files as containers of datasets, by a parser of our own: no HDF5 library is needed.
//
// Names are paths without the first "/". Groups are found by any link; soft links lead within the file. A dataset whose
// elements this does not read is listed, and says why when it is asked for.
#pragma once

#include <memory>

#include "formats/container.hpp"
#include "formats/source.hpp"

namespace penstock::formats {

// Whether the file, or what lies behind a user block of it, begins as HDF5 does.
bool is_hdf5(const ByteSource& source);
// Throws Error.
ContainerPtr open_hdf5(std::unique_ptr<const ByteSource> source);

}  // namespace penstock::formats
