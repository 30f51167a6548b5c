// How formats say that a file is damaged, that they cannot do something, or that a name is unknown: one wording for
// all, which is that of Python's `formats/faults.py`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/error.hpp"

namespace penstock::formats {

// What an error is about.
struct Subject {
    std::string file;
    std::string dataset{};  // empty: the file as a whole
};

// The bytes of the file contradict its format, or each other.
Error damaged(const Subject& subject, std::string cause, std::string advice = "the file is damaged");
// The file lacks bytes that it says it has; `cause` gives both numbers.
Error cut_short(const Subject& subject, std::string cause);
// The file may be right, but this cannot be done with it.
Error unsupported(const Subject& subject, std::string cause, std::string advice = {});
// No file of the format: `begin`, its first bytes, may say what it is.
Error foreign(const std::string& file, const std::string& format, std::span<const std::byte> begin);
// A file of this name is not made of what a caller asks for.
Error not_created(const std::string& file, std::string cause, std::string advice);
// No dataset of that name.
Error unknown(const std::string& file, const std::string& name, const std::vector<std::string>& names);

// Text of a stranger within quotes: control characters as escapes, cut when it is long.
std::string shown(std::string_view text);
std::string shown(std::span<const std::int64_t> shape);

}  // namespace penstock::formats
