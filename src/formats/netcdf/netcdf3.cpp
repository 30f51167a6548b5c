// Classic netCDF as datasets: where the bytes of its variables lie.
//
// Data are big-endian and never encoded. Records of several variables are interleaved: a variable's lie record_bytes
// apart, which is the stride of its first dimension. A variable that ends behind the end of the file is told of as the
// header tells it; a read of what is not there meets the end.
#include <algorithm>
#include <array>

#include "formats/faults.hpp"
#include "formats/netcdf/cdf_header.hpp"
#include "formats/parsers.hpp"

namespace penstock::formats {
namespace {

constexpr std::array<const char*, 12> kNetcdfTypes{"",        "int8",  "",       "int16",  "int32", "float32",
                                                   "float64", "uint8", "uint16", "uint32", "int64", "uint64"};
constexpr std::uint32_t kChar = 2;

ElementType type_of(const CdfVariable& variable) {
    if (variable.type == kChar) return {"S1", 'S', 1, 1, false};
    ElementType type;
    type_named(kNetcdfTypes[variable.type], type);
    return stored_in(type, true);
}

std::uint64_t records_in(const CdfHeader& header, std::uint64_t file_bytes) {
    if (header.records) return *header.records;
    std::uint64_t begin = file_bytes;
    for (const CdfVariable& one : header.variables) {
        if (one.is_record) begin = std::min(begin, one.begin);
    }
    return header.record_bytes == 0 ? 0 : (file_bytes - begin) / header.record_bytes;
}

StoredDataset described(const CdfHeader& header, const CdfVariable& variable, std::uint64_t records) {
    std::vector<std::int64_t> shape;
    for (const std::size_t index : variable.dimensions) {
        shape.push_back(static_cast<std::int64_t>(header.dimensions[index].length));
    }
    if (variable.is_record) shape.front() = static_cast<std::int64_t>(records);
    const bool is_flat = shape.size() <= data::kMostDimensions;
    StoredDataset dataset =
        contiguous(variable.name, type_of(variable), is_flat ? shape : std::vector<std::int64_t>{}, variable.begin);
    if (!is_flat) dataset.refusal = "it has " + std::to_string(shape.size()) + " dimensions; Penstock selects in 16";
    if (is_flat && variable.is_record) dataset.grid.strides.front() = static_cast<std::int64_t>(header.record_bytes);
    if (variable.begin < header.bytes) {
        dataset.refusal = "its data begin at " + std::to_string(variable.begin) + ", inside the header of " +
                          std::to_string(header.bytes) + " bytes";
    }
    return dataset;
}

}  // namespace

std::vector<StoredDataset> parse_netcdf3(const ByteSource& source) {
    const CdfHeader header = read_cdf_header(source);
    const std::uint64_t records = records_in(header, source.size_bytes());
    std::vector<StoredDataset> datasets;
    for (const CdfVariable& one : header.variables) {
        datasets.push_back(described(header, one, records));
        try {
            data::check_grid(datasets.back().grid);
        } catch (const Error&) {
            throw damaged({source.name()}, "variable " + shown(one.name) + " is larger than any file");
        }
    }
    return datasets;
}

}  // namespace penstock::formats
