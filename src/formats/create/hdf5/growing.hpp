// make_hdf5: a new file of HDF5 that grows by steps and is whole at any moment.
//
// Each variable that grows has a chunk a step, or as many as its schema says. What publish() writes, in this order:
// 1. new nodes of chunk indexes, and entries behind the counts of nodes: no reader sees them;
// 2. the end of the file in the superblock: it covers the data and the nodes, which are there;
// 3. what links nodes, counts entries and names roots: readers would find the new chunks, and do not ask for them;
// 4. the number of steps, in the lengths of all datasets: one write, where they lie in one page.
// A barrier separates these where what follows is wrong without what was before. Each write of 2, 3 and 4 lies within a
// page, so that a process that is killed leaves it done or not done. The HDF5 library refuses files that are shorter
// than the superblock says, and objects behind that end: hence the second place.
#pragma once

#include <cstdint>
#include <string>

#include "formats/create/schema.hpp"

namespace penstock::formats {

struct NewHdf5Options {
    bool is_netcdf4 = true;                         // dimensions, coordinates and attributes as netCDF-4 stores them
    std::string properties = "version=2,penstock";  // netCDF's record of what wrote the file
    std::uint32_t half_entries = 0;                 // of nodes of chunk indexes; 0: as many as fit a page
};

// Writes the file's metadata, and the values that the schema has. `sink` must outlive what it returns. Throws Error for
// a schema that the format cannot hold.
GrowingFilePtr make_hdf5(const FileSchema& schema, ByteSink& sink, const NewHdf5Options& options = {});

}  // namespace penstock::formats
