// The exception being handled, as an ErrorInfo: what the system, a callback or an allocation threw ends one transfer or
// one measurement with an error, never the process.
#pragma once

#include <string>

#include "penstock/error.hpp"

namespace penstock {

// To be called in a catch block. `operation` names what was being done, for exceptions that do not say it themselves.
ErrorInfo info_of_current_exception(std::string operation = {});

}  // namespace penstock
