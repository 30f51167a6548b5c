// Hdf5Image: a tree laid out: the bytes of its metadata, and the places of its data. A pure function: no file is
// touched, so a test may look at every byte.
//
// From the first byte: the superblock (version 0, or 1 where nodes of the chunk index must be smaller than usual); the
// first blocks of datasets that grow, so that few pages, mostly one, have all fields that change when a step is
// published; all other object headers; lists of references; chunk indexes; then the data. Object headers have version
// 1, which has no checksums, so that a field can change in place. Groups keep their links in their header, in the order
// of the tree, which the netCDF library asks of a file that it adds to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/create/hdf5/chunk_index.hpp"
#include "formats/create/hdf5/tree.hpp"

namespace penstock::formats {

struct PlacedObject {
    std::uint64_t header_offset = 0;
    std::vector<DataPlace> data{};      // one of contiguous elements, or one for each chunk in C order
    std::uint64_t length_offset = 0;    // of the field with the first length of a dataset that grows
    std::uint64_t root_offset = 0;      // of the field with the root of its chunk index
    std::optional<ChunkIndex> index{};  // of a dataset that grows
};

struct Hdf5Image {
    std::vector<std::byte> metadata{};  // from the first byte of the file on
    std::vector<PlacedObject> objects{};
    std::uint64_t end_field_offset = 0;  // of the field that tells how long the file is
    std::uint64_t end_bytes = 0;         // data included
};

// `half_entries`: of nodes of chunk indexes; 0: as many as fit a page. Throws Error for what HDF5 cannot hold.
Hdf5Image lay_out(const Hdf5Tree& tree, std::uint32_t half_entries = 0);
// Makes the file as long as the image, which HDF5 asks of it. Writes a byte of its data: values are written later.
void write_last_byte(const Hdf5Image& image, ByteSink& sink);
// The superblock comes last: until it is there, the file is none of HDF5.
void write_metadata(const Hdf5Image& image, ByteSink& sink);

// Whether data of this size begin on a page, so that they can move past the page cache.
bool is_aligned(std::uint64_t bytes);
// Data of this size begin at a multiple of it, a power of two. From 4 MiB on it grows with the data: stripes of
// parallel file systems are powers of two, and boxes of whole stripes share none with another process then. What is
// left out before data is less than a page or a 64th of them.
std::uint64_t data_multiple(std::uint64_t bytes);
std::uint64_t take_for_data(FileRoom& room, std::uint64_t bytes);

}  // namespace penstock::formats
