// A file that comes into being whole and durable, or not at all: os::NewFile, with bytes kept and written in large
// pieces.
#pragma once

#include <string>
#include <string_view>

#include "os/new_file/new_file.hpp"

namespace penstock::hmatrix {

class WholeFile {
  public:
    explicit WholeFile(const std::string& path);  // throws Error when it cannot be made
    void append(std::string_view bytes);
    void commit();  // writes the rest, syncs it and gives it its name; without it nothing is left

  private:
    void flush();
    std::string path_;
    std::string kept_;
    os::NewFile file_;
};

// All of `bytes` to an open descriptor; throws Error, no_space for a full disk, naming `path`.
void write_all(int descriptor, std::string_view bytes, const std::string& path);

}  // namespace penstock::hmatrix
