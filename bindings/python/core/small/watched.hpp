// Watched: what must be true of a file's name for what its format said to hold.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "python/core/core.hpp"

namespace penstock::python {

// Absent: may change.
struct Watched {
    std::string name;
    dev_t device = 0;
    ino_t inode = 0;
    std::optional<std::uint64_t> bytes;
    std::optional<std::int64_t> modified_ns, changed_ns;

    bool holds() const noexcept {
        struct stat found {};
        return ::stat(name.c_str(), &found) == 0 && is(found);
    }
    bool is(const struct stat& found) const noexcept {
        if (found.st_dev != device || found.st_ino != inode) return false;
        if (bytes && static_cast<std::uint64_t>(found.st_size) != *bytes) return false;
        return (!modified_ns || nanoseconds(found.st_mtim) == *modified_ns) &&
               (!changed_ns || nanoseconds(found.st_ctim) == *changed_ns);
    }
    static std::int64_t nanoseconds(const timespec& time) noexcept {
        return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    }
};

// A Watch of Python, and the time of the last change, if that counts. Requires: the GIL.
inline Watched watched_of(const nb::tuple& told) {
    Watched file;
    file.name = file_name(told[0], "open");
    file.device = nb::cast<dev_t>(told[1]);
    file.inode = nb::cast<ino_t>(told[2]);
    file.bytes = nb::cast<std::optional<std::uint64_t>>(told[3]);
    file.modified_ns = nb::cast<std::optional<std::int64_t>>(told[4]);
    if (told.size() > 5) file.changed_ns = nb::cast<std::optional<std::int64_t>>(told[5]);
    return file;
}

}  // namespace penstock::python
