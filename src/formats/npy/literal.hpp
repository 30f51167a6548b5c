// Reads a literal of Python, which is what the header of an NPY file is. Nothing in it is run.
#pragma once

#include <string_view>

#include "formats/json/value.hpp"

namespace penstock::formats {

// Texts, integers (those of Python 2 end in L), True, False, None, lists, tuples and dictionaries of text. Throws
// BadDocument of anything else.
Value read_literal(std::string_view text);

}  // namespace penstock::formats
