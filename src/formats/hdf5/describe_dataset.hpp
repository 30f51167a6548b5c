// From the messages of an HDF5 dataset to a StoredDataset, and to what its chunks are looked up by.
#pragma once

#include <string>

#include "formats/hdf5/index/chunk_lookup.hpp"
#include "formats/stored_dataset.hpp"

namespace penstock::formats {

struct DescribedDataset {
    StoredDataset stored{};  // with a refusal where this cannot be read
    DataLayout layout{};
    ChunkCounting grid{};  // of chunked layouts
};

// Throws BadStructure of damage; what is not supported becomes the refusal of a dataset without dimensions.
DescribedDataset describe_dataset(const MetadataBlocks& blocks, const ObjectHeader& header, const std::string& name);

}  // namespace penstock::formats
