// Numbers in messages: short, and never "0.000000" for what is small.
#pragma once

#include <cstdio>
#include <string>

namespace penstock::hmatrix {

inline std::string text_of(double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.3g", value);
    return buffer;
}

}  // namespace penstock::hmatrix
