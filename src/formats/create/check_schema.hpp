// What is wrong with a schema in any format: names, shapes, values of another size, a growing dimension out of place.
#pragma once

#include <string>

#include "formats/create/schema.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {

bool grows(const FileSchema& schema, const NewVariable& variable);
// Shape of one step, or of all of a variable that does not grow, in C order.
std::vector<std::uint64_t> step_shape(const FileSchema& schema, const NewVariable& variable);
// Bytes of that many elements. Throws Error{invalid_argument} where no file has so many.
std::uint64_t step_bytes(const FileSchema& schema, const NewVariable& variable);
// Shape and bytes of what one data file of a store has: a block, or all where there are no blocks.
std::vector<std::uint64_t> block_shape(const FileSchema& schema, const NewVariable& variable);
std::uint64_t block_bytes(const FileSchema& schema, const NewVariable& variable);

// What is thrown where a variable has the name of another one.
Error defined_twice(const std::string& file, const std::string& variable);
// Throws Error{invalid_argument} with the name of what is wrong.
void check_schema(const FileSchema& schema, const std::string& file);

}  // namespace penstock::formats
