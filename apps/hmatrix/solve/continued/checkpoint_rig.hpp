// Contexts for tests of checkpoints, and functions that read and damage files.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "penstock/context.hpp"

namespace penstock::hmatrix {

inline Context host_context(os::System* system = nullptr) {
    ContextOptions options;
    options.device = "host";
    options.system = system;
    return Context(options);
}

inline std::string bytes_of(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline void replace_bytes(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace penstock::hmatrix
