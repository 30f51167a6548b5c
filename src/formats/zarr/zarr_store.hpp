// A Zarr store as a container: its folders are groups and arrays, and a chunk is a file.
//
// What must stay true: a name has no empty parts, no "." and no "..", and no part of it is a symbolic link, so that it
// never leads out of the store. A document has at most 64 MiB.
#pragma once

#include <string>

#include "formats/container.hpp"

namespace penstock::formats {

// Whether the folder is a store.
bool is_zarr(const std::string& folder);
// Throws Error of a folder that is none.
ContainerPtr open_zarr(const std::string& folder);

}  // namespace penstock::formats
