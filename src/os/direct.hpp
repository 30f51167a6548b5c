// Whether and how O_DIRECT works on an open file: asked of statx, else tried with real reads.
//
// A file system may accept O_DIRECT at open and refuse every transfer, and the alignment it wants is neither 512 nor
// the page size by rule. So nothing is assumed where the answer can be had; where it cannot (an empty file on a file
// system that statx does not speak for) the result says "assumed".
#pragma once

#include <cstdint>
#include <string>

#include "os/fd.hpp"

namespace penstock::os {

struct DirectFacts {
    bool usable = false;
    std::uint32_t offset_alignment = 0;  // of offsets and lengths; 0 when not usable
    std::uint32_t memory_alignment = 0;
    std::string source;  // "statx", "probe", "assumed"
    std::string cause;   // why not, when not usable; why assumed, when assumed
};

struct DirectFile {
    UniqueFd fd;  // empty when not usable
    DirectFacts facts;
};

// Opens the file behind `fd` a second time, with O_DIRECT and the access mode of `fd`. Never throws for a refusal: that
// is an answer. The file is reached through /proc/self/fd, so a rename in between does no harm and O_TMPFILE files
// work.
DirectFile open_direct(System& system, int fd);

// The parts of open_direct, for tests. The fd is already open with O_DIRECT.
bool ask_statx(int fd, DirectFacts& facts);  // false: the kernel or the file system has no answer
void probe_direct(System& system, int fd, DirectFacts& facts);

}  // namespace penstock::os
