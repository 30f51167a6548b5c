// Documents of JSON in files of a folder, as stores are told by.
//
// What must stay true: a document has at most 64 MiB, and is a regular file.
#pragma once

#include <optional>
#include <string>
#include <system_error>

#include "formats/json/value.hpp"

namespace penstock::formats {

// The object in the file of that path; nothing where there is none. Throws Error; `dataset` is what it is about, empty:
// all of the file.
std::optional<Value> json_document(const std::string& path, const std::string& dataset);
// What the system refuses, as an Error.
[[noreturn]] void refuse_read(const std::string& path, const std::error_code& error);

}  // namespace penstock::formats
