// NumPy's text of a plain type, e.g. "<f8": in headers of NPY, and in documents of Zarr's version 2.
#pragma once

#include <string>

#include "formats/stored_dataset.hpp"

namespace penstock::formats {

// Throws BadDocument of what is no type of Penstock.
ElementType numpy_type(const std::string& written);

}  // namespace penstock::formats
