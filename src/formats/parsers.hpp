// The parsers of formats whose metadata are in one file: bytes to datasets, or an Error.
//
// What must stay true, whatever the bytes are: every dataset lies in the file, its grid is one that data::check_grid()
// takes, and no more memory is taken than the limits of the format, or the length of its header, allow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/source.hpp"
#include "formats/stored_dataset.hpp"

namespace penstock::formats {

std::vector<StoredDataset> parse_npy(const ByteSource& source);
std::vector<StoredDataset> parse_netcdf3(const ByteSource& source);
std::vector<StoredDataset> parse_safetensors(const ByteSource& source);

// What the caller knows of a file without metadata.
struct RawShape {
    ElementType type{};
    std::vector<std::int64_t> shape{};
    std::uint64_t offset_bytes = 0;
};
std::vector<StoredDataset> describe_raw(const ByteSource& source, const RawShape& raw);

}  // namespace penstock::formats
