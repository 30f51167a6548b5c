// See virtual_block.hpp.
#include "formats/create/hdf5/virtual/virtual_block.hpp"

#include <algorithm>
#include <vector>

#include "formats/create/hdf5/encoder.hpp"
#include "formats/hdf5/lookup3.hpp"

namespace penstock::formats {
namespace {

void put_all(Hdf5Encoder& out) {
    constexpr unsigned kWholeSelection = 3;
    out.number(kWholeSelection, 4).number(1, 4).number(0, 4).number(0, 4);
}

// The rows of a source within the virtual dataset, as a regular hyperslab of one block.
void put_rows(Hdf5Encoder& out, const Hdf5Dataset& dataset, const Hdf5Source& source) {
    constexpr unsigned kHyperslab = 2, kVersion = 2, kIsRegular = 1, kFields = 4;
    const std::uint64_t rank = dataset.shape.size();
    out.number(kHyperslab, 4).number(kVersion, 4).number(kIsRegular, 1);
    out.number(4 + kFields * 8 * rank, 4).number(rank, 4);
    for (std::uint64_t i = 0; i < rank; ++i) {
        const std::uint64_t length = i == 0 ? source.rows : dataset.shape[i];
        out.number(i == 0 ? source.first_row : 0, 8).number(length, 8).number(1, 8).number(length, 8);
    }
}

}  // namespace

std::string virtual_block(const Hdf5Dataset& dataset) {
    Hdf5Encoder out;
    out.number(0, 1).number(dataset.sources.size(), 8);
    for (const Hdf5Source& source : dataset.sources) {
        out.text(source.file).number(0, 1).text(source.path).number(0, 1);
        put_all(out);
        put_rows(out, dataset, source);
    }
    std::vector<std::byte> bytes = out.take();
    const std::uint32_t sum = lookup3(bytes);
    for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(sum >> (8 * i)));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace penstock::formats
