// Arrays in stripes over files, for tests. The rig cuts an array into stripes and appends each to the next file,
// without the arithmetic of the code under test.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "ondevice/files/file_set.hpp"
#include "ondevice/service/opened_file_rig.hpp"

namespace penstock::ondevice {

using FileBytes = std::vector<unsigned char>;

inline std::vector<FileBytes> dealt(const FileBytes& all, std::size_t files, u64 stripe) {
    std::vector<FileBytes> parts(files);
    std::size_t next = 0;
    for (auto from = all.begin(); from != all.end(); next = (next + 1) % files) {
        const auto to = from + static_cast<std::ptrdiff_t>(std::min<u64>(stripe, static_cast<u64>(all.end() - from)));
        parts[next].insert(parts[next].end(), from, to);
        from = to;
    }
    return parts;
}

inline FileBytes joined(std::vector<FileBytes> parts, u64 stripe) {
    FileBytes all;
    for (std::size_t next = 0; !parts[next].empty(); next = (next + 1) % parts.size()) {
        const auto end = parts[next].begin() + static_cast<std::ptrdiff_t>(std::min<u64>(stripe, parts[next].size()));
        all.insert(all.end(), parts[next].begin(), end);
        parts[next].erase(parts[next].begin(), end);
    }
    return all;
}

// The names of one array's files. With one file the stripe is not used.
struct StripedNames {
    std::vector<std::string> names;
    u64 stripe = 0;

    void write(const FileBytes& all) const {
        const auto parts = dealt(all, names.size(), names.size() == 1 ? std::max<u64>(all.size(), 1) : stripe);
        for (std::size_t i = 0; i < names.size(); ++i)
            std::ofstream(names[i], std::ios::binary)
                .write(reinterpret_cast<const char*>(parts[i].data()), static_cast<std::streamsize>(parts[i].size()));
    }
    FileBytes read() const {
        std::vector<FileBytes> parts;
        for (const std::string& name : names) {
            parts.emplace_back(std::filesystem::file_size(name));
            std::ifstream(name, std::ios::binary)
                .read(reinterpret_cast<char*>(parts.back().data()), static_cast<std::streamsize>(parts.back().size()));
        }
        return names.size() == 1 ? parts[0] : joined(std::move(parts), stripe);
    }
};

inline StripedNames striped_names(const std::string& stem, std::size_t files, u64 stripe) {
    StripedNames all{{}, stripe};
    for (std::size_t i = 0; i < files; ++i) all.names.push_back(stem + std::to_string(i));
    return all;
}

struct OpenedSet {
    explicit OpenedSet(const StripedNames& all, int flags = O_RDWR) {
        std::vector<const FileHandle*> handles;
        for (const std::string& name : all.names) {
            files.push_back(std::make_unique<OpenedFile>(name, flags));
            handles.push_back(&files.back()->handle);
        }
        set = FileSet(std::move(handles), all.stripe);
    }
    std::vector<std::unique_ptr<OpenedFile>> files;
    FileSet set = nullptr;
};

}  // namespace penstock::ondevice
