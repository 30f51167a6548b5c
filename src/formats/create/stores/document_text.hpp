// Numbers and attributes as the text of JSON documents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "formats/create/schema.hpp"

namespace penstock::formats {

std::string list_text(std::span<const std::uint64_t> numbers);
// JSON has no words for what is no number: these are Zarr's, "NaN", "Infinity" and "-Infinity".
std::string number_text(double value);
// Requires: the attribute is of numbers.
double number_of(const NewAttribute& one, std::size_t index);
std::string attribute_text(const NewAttribute& one);
// The names of a variable's dimensions.
std::string dimensions_text(const FileSchema& schema, const NewVariable& variable);

}  // namespace penstock::formats
