// Finds whether O_DIRECT works on an open file, and with which alignment: asks statx, and otherwise tries real reads.
//
// A file system may accept O_DIRECT at open and refuse every transfer. The alignment that it needs may differ from 512
// bytes and from the page size. So the alignment is assumed only where it cannot be found: for an empty file on a file
// system without statx support, and for a file of a server that may not answer. Then the source is "assumed".
//
// A file system that accepts O_DIRECT may still use the page cache: tmpfs has nothing else, btrfs reads compressed
// bytes through it, and a FUSE server has the page cache of its own files. So `bypass` says what a successful O_DIRECT
// transfer proves.
#pragma once

#include <cstdint>
#include <string>

#include "os/fd.hpp"
#include "os/file/file_stat.hpp"

namespace penstock::os {

enum class Bypass : std::uint8_t {
    promised,  // statx says that direct transfers of this file bypass the page cache
    shown,     // a transfer may use the page cache, and the page cache shows whether it did
    unknown,   // no source says whether it does; DirectFacts has the cause
};

struct DirectFacts {
    bool usable = false;
    std::uint32_t offset_alignment = 0;  // of offsets and lengths, in bytes; 0 when not usable
    std::uint32_t memory_alignment = 0;
    std::string source;  // "statx", "probe" or "assumed"
    std::string cause;   // why O_DIRECT is not usable, or why the alignment is assumed
    Bypass bypass = Bypass::unknown;
    std::string unknown_cause;        // why `bypass` is unknown for reads and writes; empty: it is known
    std::string write_unknown_cause;  // why it is unknown for writes only
};

struct DirectFile {
    UniqueFd fd;  // empty when not usable
    DirectFacts facts;
    int refusal = 0;  // the errno with which the system refused the descriptor
};

// Opens the file behind `fd` a second time, with O_DIRECT and the access mode of `fd`. If the file system refuses, the
// result says so and nothing is thrown. The file is opened through /proc/self/fd, so a rename in between does no harm
// and files made by O_TMPFILE work.
DirectFile open_direct(System& system, int fd);
// As above, for a caller that already knows the file system.
DirectFile open_direct(System& system, int fd, const FileStat& facts);

// The steps of open_direct, for tests. Requires: `fd` is open with O_DIRECT.
bool ask_statx(int fd, DirectFacts& facts);  // false: the kernel or the file system cannot answer
void probe_direct(System& system, int fd, DirectFacts& facts);

}  // namespace penstock::os
