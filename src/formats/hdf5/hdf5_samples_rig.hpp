// HDF5 files in memory, as the library's writer lays them out, for tests of the parser: each has a dataset "data",
// whose elements are the table of samples_rig.hpp.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/create/hdf5/layout.hpp"
#include "formats/hdf5/hdf5_file.hpp"
#include "formats/samples_rig.hpp"

namespace penstock::formats::testing {

inline std::string hdf5_of(const Hdf5Tree& tree, const std::vector<std::pair<ObjectNumber, std::string>>& data) {
    const Hdf5Image image = lay_out(tree);
    std::string file(reinterpret_cast<const char*>(image.metadata.data()), image.metadata.size());
    file.resize(image.end_bytes);
    for (const auto& [object, bytes] : data) {
        std::size_t taken = 0;
        for (const DataPlace& place : image.objects[object].data) {
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(taken), place.bytes,
                        file.begin() + static_cast<std::ptrdiff_t>(place.offset_bytes));
            taken += place.bytes;
        }
    }
    return file;
}

inline Hdf5Object table_object(bool is_big_endian) {
    Hdf5Object object;
    type_named("int32", object.dataset.type);
    object.dataset.type = stored_in(object.dataset.type, is_big_endian);
    object.dataset.shape = {5, 7};
    return object;
}

inline std::string sample_hdf5(bool is_big_endian = false) {
    Hdf5Tree tree;
    const ObjectNumber number = add_object(tree, "data", table_object(is_big_endian));
    return hdf5_of(tree, {{number, table(5, 7, is_big_endian)}});
}

// In chunks of 2 x 4, of which those at the edges are whole.
inline std::string sample_hdf5_chunks() {
    Hdf5Tree tree;
    Hdf5Object object = table_object(false);
    object.dataset.chunk = {2, 4};
    const ObjectNumber number = add_object(tree, "data", object);
    std::string chunks;
    for (int row = 0; row < 5; row += 2) {
        for (int column = 0; column < 7; column += 4) {
            for (int at = 0; at < 8; ++at)
                chunks += little(static_cast<std::uint64_t>(1000 * (row + at / 4) + column + at % 4), 4);
        }
    }
    return hdf5_of(tree, {{number, chunks}});
}

// As parsers of other formats give them.
inline std::vector<StoredDataset> parse_hdf5(const ByteSource& source) {
    const auto bytes = source.read(0, source.size_bytes());
    const auto* first = reinterpret_cast<const char*>(bytes.data());
    const ContainerPtr file = open_hdf5(std::make_unique<MemorySource>(std::string(first, first + bytes.size())));
    std::vector<StoredDataset> datasets;
    for (const std::string& name : file->names()) {
        datasets.push_back(file->dataset(name));
        const StoredDataset& one = datasets.back();
        const auto& shape = one.grid.shape;
        const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
        if (one.refusal.empty() && !is_empty) file->place(one, std::vector<std::int64_t>(shape.size()));
    }
    return datasets;
}

}  // namespace penstock::formats::testing
