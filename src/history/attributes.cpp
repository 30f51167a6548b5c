// See attributes.hpp.
#include "history/attributes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "formats/create/check_schema.hpp"
#include "formats/faults.hpp"

namespace penstock::history {
namespace {

using formats::NewAttribute;
using formats::shown;

template <typename Number>
void append(std::vector<std::byte>& bytes, double value) {
    const auto number = static_cast<Number>(value);
    const auto* first = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.end(), first, first + sizeof number);
}

}  // namespace

void refuse(std::string cause, std::string advice) {
    throw Error(ErrorCode::invalid_argument, "define", std::move(cause), std::move(advice));
}

formats::ElementType type_named(const std::string& what, const std::string& name) {
    formats::ElementType type;
    if (!formats::type_named(name, type))
        refuse(what + " has dtype " + shown(name), "use \"float32\", \"float64\", \"int32\", ...");
    return type;
}

NewAttribute attribute_of(const std::string& owner, const HistoryAttribute& given) {
    if (given.dtype.empty()) return formats::text_attribute(given.name, given.text);
    NewAttribute made;
    const std::string what = "attribute " + shown(given.name) + " of " + owner;
    made.name = given.name;
    made.type = type_named(what, given.dtype);
    if (given.numbers.empty()) refuse(what + " has no numbers", "give one or more, or text");
    if (given.numbers.size() > 1) made.shape = {given.numbers.size()};
    for (const double value : given.numbers) {
        if (given.dtype == "int32" && value != std::trunc(value)) {
            refuse(what + " is " + std::to_string(value) + " of dtype int32", "give whole numbers, or dtype float64");
        }
        if (given.dtype == "float32") {
            append<float>(made.bytes, value);
        } else if (given.dtype == "float64") {
            append<double>(made.bytes, value);
        } else if (given.dtype == "int32" && value >= -2147483648.0 && value <= 2147483647.0) {
            append<std::int32_t>(made.bytes, value);
        } else {
            refuse(what + " is " + std::to_string(value) + " of dtype " + given.dtype,
                   "attributes have dtype float32, float64 or int32");
        }
    }
    return made;
}

bool has_attribute(const std::vector<HistoryAttribute>& attributes, const std::string& name) {
    return std::any_of(attributes.begin(), attributes.end(), [&](const auto& one) { return one.name == name; });
}

}  // namespace penstock::history
