// The metadata of one Zarr array, as data: from zarr.json (version 3) or .zarray (version 2) to a dataset and the names
// of its chunk files.
//
// What must stay true: a document that is wrong is an Error that says what is wrong; one that is right but uses what is
// not done here is a dataset with a refusal. Names of chunk files are made of integers, never taken from the document.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "formats/faults.hpp"
#include "formats/json/value.hpp"
#include "formats/stored_dataset.hpp"
#include "formats/zarr/shards.hpp"

namespace penstock::formats {

// How chunk files are named.
struct ChunkKeys {
    std::string prefix;  // the first part of the name; empty in version 2
    std::string separator;
    // Relative to the array's folder.
    std::string path(std::span<const std::int64_t> cell) const;
};

struct ZarrArray {
    StoredDataset dataset{};
    ChunkKeys keys{};  // of chunk files
    Sharding sharding{};
};

ZarrArray parse_zarr3(const Subject& subject, const Value& document);
ZarrArray parse_zarr2(const Subject& subject, const Value& document);

// An element of the value that a document gives as fill value, in this machine's order of bytes; none: zeros. Throws
// BadDocument of a value that is not understood here.
std::vector<std::byte> fill_of(const Value& value, const ElementType& type);

}  // namespace penstock::formats
