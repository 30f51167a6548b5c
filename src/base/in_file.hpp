// The file that errors are about, for functions whose callers have several open.
#pragma once

#include <string>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::base {

// Runs `call`. What it throws without a file gets this one.
template <class Call>
decltype(auto) in_file(const std::string& file, Call&& call) {
    try {
        return std::forward<Call>(call)();
    } catch (const Error& error) {
        if (!error.info().file.empty()) throw;
        ErrorInfo info = error.info();
        info.file = file;
        throw Error(std::move(info));
    }
}

}  // namespace penstock::base
