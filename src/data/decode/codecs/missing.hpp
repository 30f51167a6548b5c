// The refusal of a filter whose library was not there when Penstock was built.
#pragma once

#include <string>

#include "penstock/error.hpp"

namespace penstock::data {

[[noreturn]] inline void refuse_without(const std::string& library,
                                        const char* operation = "decode chunks") {
    throw Error(ErrorCode::unsupported, operation, "this build of Penstock has no " + library,
                "build it where the headers of " + library + " are installed (tools/setup.sh installs them)");
}

}  // namespace penstock::data
