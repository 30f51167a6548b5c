// Converts the exception being handled into an ErrorInfo, so that an exception of the system, of a callback or of an
// allocation ends one transfer or measurement with an error, and not the process.
#pragma once

#include <string>

#include "penstock/error.hpp"

namespace penstock {

// Requires: the caller is in a catch block. `operation` is used for exceptions that name no operation.
ErrorInfo info_of_current_exception(std::string operation = {});

}  // namespace penstock
