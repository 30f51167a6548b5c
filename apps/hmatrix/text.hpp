// Formats numbers for messages: three significant digits, so that a small number is never printed as "0.000000".
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
