// Converts the exception being handled into an ErrorInfo, so that an exception of the system, of a callback or of an
// allocation ends one transfer or measurement with an error, and not the process.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "penstock/error.hpp"

namespace penstock {

// Requires: the caller is in a catch block. `operation` is used for exceptions that name no operation. Inline: where a
// program and a shared library each hold a C++ runtime of their own, only the one that caught an exception can throw it
// again.
inline ErrorInfo info_of_current_exception(std::string operation = {}) {
    ErrorInfo info;
    info.code = ErrorCode::internal;
    info.operation = std::move(operation);
    try {
        throw;
    } catch (const Error& error) {
        info = error.info();
    } catch (const std::bad_alloc&) {
        info.code = ErrorCode::out_of_memory;
        info.cause = "the process has no memory left";
    } catch (const std::exception& error) {
        info.cause = error.what();
    } catch (...) {
        info.cause = "something that is no exception was thrown";
    }
    return info;
}

}  // namespace penstock
