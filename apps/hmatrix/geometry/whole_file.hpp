// A file that comes into being whole: bytes go to a temporary file in the same folder, which takes the name at the end.
#pragma once

#include <string>
#include <string_view>

namespace penstock::hmatrix {

class WholeFile {
  public:
    explicit WholeFile(std::string path);  // throws Error when the temporary file cannot be made
    ~WholeFile();                          // without commit(): the temporary file is removed
    WholeFile(const WholeFile&) = delete;
    WholeFile& operator=(const WholeFile&) = delete;

    void append(std::string_view bytes);  // kept and written in large pieces
    void commit();                        // writes the rest, syncs, closes and renames

  private:
    void flush();
    std::string path_;
    std::string temporary_;
    std::string kept_;
    int descriptor_ = -1;
};

// All of `bytes` to an open descriptor; throws Error, no_space for a full disk, naming `path`.
void write_all(int descriptor, std::string_view bytes, const std::string& path);

}  // namespace penstock::hmatrix
