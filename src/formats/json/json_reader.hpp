// Reads JSON of strangers: whatever the text is, the answer is a Value or a BadDocument.
//
// Strict by RFC 8259, and beyond it: valid UTF-8, no name twice in an object, at most kMostDepth levels and kMostValues
// values, so that memory is bounded by the length of the text.
#pragma once

#include <string_view>

#include "formats/json/value.hpp"

namespace penstock::formats {

struct JsonRules {
    bool names_of_numbers = false;  // NaN, Infinity and -Infinity without quotes are text, as writers of Zarr left them
};

// Throws BadDocument.
Value read_json(std::string_view text, const JsonRules& rules = {});

}  // namespace penstock::formats
