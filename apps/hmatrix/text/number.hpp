// Numbers for error messages: as short as they are exact enough, where std::to_string shows 1e-9 as 0.000000.
#pragma once

#include <cstdio>
#include <string>

namespace penstock::hmatrix {

inline std::string text_of(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

}  // namespace penstock::hmatrix
