// What the system refused, as an Error that says what to do next; and calls that a signal interrupted, again.
#pragma once

#include <cerrno>
#include <string>

#include "penstock/error.hpp"

namespace penstock::os {

// What to do about an errno value that a file met; empty where there is nothing to say.
const char* advice_for(int error_number);

// Of a failed call on a name or on the file behind it. `advice`: empty, the one that fits the number.
ErrorInfo refusal(const char* operation, const std::string& name, int error_number, const char* advice = "");
[[noreturn]] void refuse(const char* operation, const std::string& name, int error_number, const char* advice = "");

// Signals may interrupt such calls on NFS and FUSE.
template <typename Call>
int again_if_interrupted(const Call& call) {
    int result = 0;
    do {
        result = call();
    } while (result != 0 && errno == EINTR);
    return result;
}

}  // namespace penstock::os
