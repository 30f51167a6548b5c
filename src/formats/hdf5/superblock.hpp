// The superblock of an HDF5 file: where addresses count from, how wide they are, and where the root group lies.
//
// Versions 0 to 3. It may lie behind a user block of 512 bytes or a power of two above, as MATLAB writes it.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/hdf5/metadata_blocks.hpp"

namespace penstock::formats {

struct Superblock {
    FileFrame frame{};
    std::uint64_t root = 0;                    // address of the root group's header
    std::optional<std::uint64_t> extension{};  // address of a header that says more
    std::uint8_t version = 0;
};

// Whether it is an HDF5 file at all: where the superblock begins.
std::optional<std::uint64_t> find_superblock(const ByteSource& source);
// Throws BadStructure. Requires: find_superblock() found it there.
Superblock read_superblock(const ByteSource& source, std::uint64_t begin);
// Throws BadStructure of files whose structures do not all lie where their addresses say.
void check_extension(const MetadataBlocks& blocks, const Superblock& superblock);

}  // namespace penstock::formats
