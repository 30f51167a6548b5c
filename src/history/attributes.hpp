// Attributes as a history is told them, and as the schema of its file has them.
#pragma once

#include <string>
#include <vector>

#include "formats/create/schema.hpp"
#include "penstock/history.hpp"

namespace penstock::history {

// Throws Error{invalid_argument} of a definition that makes no sense.
[[noreturn]] void refuse(std::string cause, std::string advice);

// `what` names in an error whose type it is.
formats::ElementType type_named(const std::string& what, const std::string& name);

// `owner` names in an error whose attribute it is. Throws Error{invalid_argument}.
formats::NewAttribute attribute_of(const std::string& owner, const HistoryAttribute& given);

bool has_attribute(const std::vector<HistoryAttribute>& attributes, const std::string& name);

}  // namespace penstock::history
