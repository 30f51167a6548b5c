// Whether and how O_DIRECT works on an open file: asked of statx, else tried with real reads.
//
// A file system may accept O_DIRECT at open and refuse every transfer, and the alignment it wants is neither 512 nor
// the page size by rule. So nothing is assumed where the answer can be had; where it cannot (an empty file on a file
// system that statx does not speak for, a file of a server that may not answer) the result says "assumed".
//
// That a file system takes O_DIRECT does not mean that bytes go past the page cache: tmpfs takes it and has nothing
// else, btrfs reads compressed bytes by the page cache, a FUSE server has the page cache of its own files. So the
// result says what a transfer that was asked for by O_DIRECT proves.
#pragma once

#include <cstdint>
#include <string>

#include "os/fd.hpp"
#include "os/file/file_facts.hpp"

namespace penstock::os {

enum class Bypass : std::uint8_t {
    promised,  // the kernel says of this file that direct transfers are direct (statx)
    shown,     // it may not happen, and the page cache shows whether it did
    unknown,   // nothing tells; the cause is in DirectFacts
};

struct DirectFacts {
    bool usable = false;
    std::uint32_t offset_alignment = 0;  // of offsets and lengths; 0 when not usable
    std::uint32_t memory_alignment = 0;
    std::string source;  // "statx", "probe", "assumed"
    std::string cause;   // why not, when not usable; why assumed, when assumed
    Bypass bypass = Bypass::unknown;
    std::string unknown_cause;        // why it is unknown of reads and writes; empty: it is known
    std::string write_unknown_cause;  // the same of writes alone
};

struct DirectFile {
    UniqueFd fd;  // empty when not usable
    DirectFacts facts;
};

// Opens the file behind `fd` a second time, with O_DIRECT and the access mode of `fd`. Never throws for a refusal: that
// is an answer. The file is reached through /proc/self/fd, so a rename in between does no harm and O_TMPFILE files
// work.
DirectFile open_direct(System& system, int fd);
// The same where its file system is known already.
DirectFile open_direct(System& system, int fd, const FileFacts& facts);

// The parts of open_direct, for tests. The fd is already open with O_DIRECT.
bool ask_statx(int fd, DirectFacts& facts);  // false: the kernel or the file system has no answer
void probe_direct(System& system, int fd, DirectFacts& facts);

}  // namespace penstock::os
