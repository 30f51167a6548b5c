// Attributes of a schema, made of text and of numbers: the bytes lie in this machine's order, and the type says so.
#include "formats/create/schema.hpp"

#include <cstring>
#include <utility>

namespace penstock::formats {
namespace {

template <typename Number>
NewAttribute of_numbers(std::string name, const char* type, std::span<const Number> values) {
    NewAttribute made;
    made.name = std::move(name);
    type_named(type, made.type);
    made.bytes.resize(values.size_bytes());
    if (!values.empty()) std::memcpy(made.bytes.data(), values.data(), values.size_bytes());
    return made;
}

}  // namespace

NewAttribute text_attribute(std::string name, std::string_view text) {
    NewAttribute made;
    made.name = std::move(name);
    made.type = raw_type(static_cast<std::uint32_t>(text.size()));
    made.type.name = "S" + std::to_string(text.size());
    made.type.kind = 'S';
    made.bytes.resize(text.size());
    if (!text.empty()) std::memcpy(made.bytes.data(), text.data(), text.size());
    return made;
}

NewAttribute number_attribute(std::string name, double value) {
    return of_numbers(std::move(name), "float64", std::span<const double>(&value, 1));
}

NewAttribute number_attribute(std::string name, float value) {
    return of_numbers(std::move(name), "float32", std::span<const float>(&value, 1));
}

NewAttribute number_attribute(std::string name, std::int32_t value) {
    return of_numbers(std::move(name), "int32", std::span<const std::int32_t>(&value, 1));
}

NewAttribute numbers_attribute(std::string name, std::span<const double> values) {
    NewAttribute made = of_numbers(std::move(name), "float64", values);
    made.shape = {values.size()};
    return made;
}

}  // namespace penstock::formats
