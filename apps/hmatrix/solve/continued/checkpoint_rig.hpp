// Contexts for tests of checkpoints, and functions that read and damage files.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "context/seams.hpp"

namespace penstock::hmatrix {

inline Context host_context(os::System* system = nullptr) {
    return context::make_context({.device = "host"}, {.system = system});
}

inline std::string bytes_of(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline void replace_bytes(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace penstock::hmatrix
