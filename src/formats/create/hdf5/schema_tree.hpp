// SchemaTree: the tree of HDF5 for a file of named variables: as plain datasets, or as netCDF-4 stores dimensions and
// variables, so that the netCDF library tells the same as of a file of its own.
#pragma once

#include <string>
#include <vector>

#include "formats/create/check_schema.hpp"
#include "formats/create/hdf5/tree.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {

struct SchemaTree {
    Hdf5Tree tree{};
    std::vector<ObjectNumber> variables{};  // of the schema, in its order
};

// Throws Error{invalid_argument} for a schema that contradicts itself, and Error{unsupported} for what HDF5 cannot
// hold.
SchemaTree plain_tree(const FileSchema& schema, const std::string& file);
// `properties`: netCDF's record of what wrote the file. Refuses also what netCDF-4 cannot hold.
SchemaTree netcdf4_tree(const FileSchema& schema, const std::string& file, const std::string& properties);

// What both stand on.
Error new_file_error(const std::string& file, ErrorCode code, std::string cause, std::string advice);
void check_filters(const FileSchema& schema, const std::string& file);
Hdf5Object variable_object(const FileSchema& schema, const NewVariable& variable);  // a dataset, with no step yet
// The shape of the chunks of a variable that grows: one step, cut where it has 4 GiB or more.
std::vector<std::uint64_t> step_chunk(const std::vector<std::uint64_t>& shape, std::uint64_t item_bytes);

}  // namespace penstock::formats
