// Temporary directories and stamped files for the tests of this folder.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/context.hpp"
#include "penstock/stamp.hpp"

namespace penstock::test {

inline constexpr std::uint64_t kSeed = 7;

class TempDirectory {
  public:
    explicit TempDirectory(const std::string& parent = {}) {
        const char* base = std::getenv("TEST_TMPDIR");
        std::string pattern =
            (!parent.empty() ? parent : std::string(base != nullptr ? base : "/tmp")) + "/penstock-XXXXXX";
        const char* made = ::mkdtemp(pattern.data());
        if (made == nullptr) throw Error(errno_info("make a directory", pattern, errno));
        path_ = made;
    }
    ~TempDirectory() { std::filesystem::remove_all(path_); }
    TempDirectory(const TempDirectory&) = delete;
    TempDirectory& operator=(const TempDirectory&) = delete;
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }
    std::size_t entries() const {
        const std::filesystem::directory_iterator all(path_);
        return static_cast<std::size_t>(std::distance(begin(all), end(all)));
    }

  private:
    std::string path_;
};

// Whole words at once, because tests make gigabytes of it.
inline std::vector<unsigned char> stamped(std::uint64_t bytes, std::uint64_t offset = 0) {
    const std::uint64_t skipped = offset % 8, words = (skipped + bytes + 7) / 8;
    std::vector<unsigned char> data(words * 8);
    for (std::uint64_t i = 0; i < words; ++i) {
        const std::uint64_t word = stamp_word(kSeed, offset / 8 + i);
        std::memcpy(&data[i * 8], &word, 8);
    }
    data.erase(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(skipped));
    data.resize(bytes);
    return data;
}

inline void write_file(const std::string& name, const std::vector<unsigned char>& data) {
    std::ofstream(name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
}

inline std::vector<unsigned char> read_file(const std::string& name) {
    std::vector<unsigned char> data(std::filesystem::file_size(name));
    std::ifstream(name, std::ios::binary)
        .read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
    return data;
}

inline std::vector<unsigned char> fetch(const Context& context, const void* device, std::uint64_t bytes) {
    std::vector<unsigned char> data(bytes);
    if (bytes != 0) context.copy_to_host(data.data(), device, bytes);
    return data;
}

}  // namespace penstock::test
