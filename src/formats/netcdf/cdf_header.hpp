// The header of a classic netCDF file (CDF-1, CDF-2, CDF-5) as data, and the parser that makes it.
//
// The grammar is in the appendix "File Format Specifications" of the netCDF user's guide; CDF-5 widens counts to 64
// bits. Where the netCDF library reads more than the grammar allows, this parser does too: names that end in zero
// bytes, are empty or no UTF-8, types of CDF-5 in older versions, any tag of an empty list. What must stay true: every
// count is compared with the bytes that are left before anything of that size is made; no arithmetic overflows; a
// header has at most 256 MiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/source.hpp"

namespace penstock::formats {

struct CdfDimension {
    std::string name;
    std::uint64_t length = 0;  // 0: the record dimension
};

struct CdfVariable {
    std::string name;
    std::vector<std::size_t> dimensions;  // numbers of CdfHeader::dimensions
    std::uint32_t type = 0;
    std::uint64_t begin = 0;  // where its data, or those of its first record, begin
    bool is_record = false;
    std::uint64_t row_bytes = 0;  // of one record, or of all of a variable without records
};

struct CdfHeader {
    std::optional<std::uint64_t> records;  // nothing: the writer was streaming, the file's size tells
    std::vector<CdfDimension> dimensions;
    std::vector<CdfVariable> variables;
    std::uint64_t record_bytes = 0;  // from one record to the next
    std::uint64_t bytes = 0;         // of the header
};

// What the lists of a header begin with.
inline constexpr std::uint32_t kCdfDimensions = 10, kCdfVariables = 11, kCdfAttributes = 12;

std::uint32_t cdf_item_bytes(std::uint32_t type);  // 0: there is no such type

CdfHeader read_cdf_header(const ByteSource& source);

}  // namespace penstock::formats
