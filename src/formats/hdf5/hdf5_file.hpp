// HDF5 and netCDF-4 files as containers of datasets, by a parser of our own: no HDF5 library is needed.
//
// Names are paths without the first "/". Groups are found by any link; soft links lead within the file. A dataset whose
// elements this does not read is listed, and says why when it is asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "formats/container.hpp"
#include "formats/source.hpp"

namespace penstock::formats {

// Whether the file, or what lies behind a user block of it, begins as HDF5 does.
bool is_hdf5(const ByteSource& source);

class Hdf5Container : public Container {
  public:
    // A dataset whose elements lie one after the other in the file, from its offset_bytes on. Nothing of others: of
    // chunks, of what lies in headers or in other files or has no space yet, of names that lead to none.
    virtual std::optional<StoredDataset> contiguous_dataset(const std::string& name) const = 0;
};

// Throws Error.
std::unique_ptr<const Hdf5Container> open_hdf5(std::unique_ptr<const ByteSource> source);

}  // namespace penstock::formats
