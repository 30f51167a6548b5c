// New classic netCDF files (CDF-2 and CDF-5), of whole arrays and of steps.
//
// A file is its header, the variables that do not grow, and then records: one for each step, with a slab of each
// growing variable. To publish a step is to write one number of the header, so a file is whole at any moment. The
// grammar is in the appendix "File Format Specifications" of the netCDF user's guide.
#pragma once

#include <cstdint>
#include <string>

#include "formats/create/schema.hpp"

namespace penstock::formats {

enum class CdfVersion : std::uint8_t { cdf2 = 2, cdf5 = 5 };

// The number of a type in the file, e.g. 5 for "float32". 0: the version has no such type.
std::uint32_t cdf_type(const ElementType& type, CdfVersion version);

// Writes the header, the values that the schema gives, and zeros up to the first record, and returns what adds steps.
// The sink must outlive it. Names and shapes are checked before anything is written. Throws Error{invalid_argument}.
GrowingFilePtr make_cdf(const FileSchema& schema, ByteSink& sink, CdfVersion version);

}  // namespace penstock::formats
