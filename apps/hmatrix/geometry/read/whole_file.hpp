// A new file that appears complete and durable, or not at all. It wraps os::NewFile and writes in large pieces.
#pragma once

#include <string>
#include <string_view>

#include "os/new_file/new_file.hpp"

namespace penstock::hmatrix {

class WholeFile {
  public:
    explicit WholeFile(const std::string& path);  // throws Error if the file cannot be made
    void append(std::string_view bytes);
    // Writes the rest, syncs the file and gives it its name. Without this call the file never appears.
    void commit();

  private:
    void flush();
    std::string path_;
    std::string kept_;
    os::NewFile file_;
};

// Writes all of `bytes` to a descriptor. Throws Error that names `path`, with the code no_space for a full disk.
void write_all(int descriptor, std::string_view bytes, const std::string& path);

}  // namespace penstock::hmatrix
