// HDF5 and netCDF-4 files as containers of datasets, by a parser of our own: no HDF5 library is needed.
//
// Names are paths without the first "/". Groups are found by any link; soft links lead within the file. A dataset whose
// elements this does not read is listed, and says why when it is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/container.hpp"
#include "formats/source.hpp"

namespace penstock::formats {

// Whether the file, or what lies behind a user block of it, begins as HDF5 does.
bool is_hdf5(const ByteSource& source);

// A dataset whose elements lie in the file itself: one after the other, from its offset_bytes on, or in chunks.
struct LaidDataset {
    StoredDataset stored{};
    bool is_chunked = false;
    std::vector<std::optional<std::uint64_t>> most{};  // elements that it may grow to; nothing: without end
};

class Hdf5Container : public Container {
  public:
    // Nothing: its elements lie in headers or in other files, or are contiguous and have no space yet, or are refused;
    // or the name leads to no dataset of this file.
    virtual std::optional<LaidDataset> laid_dataset(const std::string& name) const = 0;
};

// Throws Error.
std::unique_ptr<const Hdf5Container> open_hdf5(std::unique_ptr<const ByteSource> source);

}  // namespace penstock::formats
