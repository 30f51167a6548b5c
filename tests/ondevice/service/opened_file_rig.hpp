// A file opened as a context opens it: through the page cache and, if the file system can, past it.
#pragma once

#include <fcntl.h>

#include <string>

#include "os/fd.hpp"
#include "os/file/direct.hpp"
#include "path/path.hpp"

namespace penstock::ondevice {

struct OpenedFile {
    explicit OpenedFile(const std::string& name, int flags = O_RDWR) : fd(::open(name.c_str(), flags)) {
        direct = os::open_direct(os::real_system(), fd.get());
        handle.name = name;
        handle.buffered_fd = fd.get();
        handle.direct_fd = direct.fd.get();
        if (direct.facts.usable) {
            handle.offset_alignment = direct.facts.offset_alignment;
            handle.memory_alignment = direct.facts.memory_alignment;
        }
        handle.writable = (flags & O_ACCMODE) != O_RDONLY;
    }
    os::UniqueFd fd;
    os::DirectFile direct;
    FileHandle handle;
};

}  // namespace penstock::ondevice
