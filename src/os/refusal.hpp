// Turns an errno into an Error that says what to do next, and repeats calls that a signal interrupted.
#pragma once

#include <cerrno>
#include <string>

#include "penstock/error.hpp"

namespace penstock::os {

// Returns what to do about an errno that a file operation returned, or an empty string.
const char* advice_for(int error_number);

// The process or the system has no descriptor left: what was refused may go well a moment later.
bool is_out_of_descriptors(int error_number) noexcept;

// For a failed call on a name or on the file behind it. Empty `advice`: the advice for the number.
ErrorInfo refusal(const char* operation, const std::string& name, int error_number, const char* advice = "");
[[noreturn]] void refuse(const char* operation, const std::string& name, int error_number, const char* advice = "");

// Signals may interrupt these calls on NFS and FUSE.
template <typename Call>
int again_if_interrupted(const Call& call) {
    int result = 0;
    do {
        result = call();
    } while (result != 0 && errno == EINTR);
    return result;
}

}  // namespace penstock::os
