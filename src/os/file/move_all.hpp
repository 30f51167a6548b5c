// Moves all bytes of one read or write between an open file and memory, with as many system calls as that takes.
//
// Linux may move fewer bytes than a call asks for, and a signal or a busy file system may end a call before any have
// moved (EINTR, EAGAIN). Penstock answers both here. The user of a queue of operations cannot loop: it asks try_again()
// whether to submit an operation once more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/system.hpp"
#include "penstock/types.hpp"

namespace penstock::os {

// One read or write of consecutive bytes.
struct FileMove {
    Direction direction = Direction::read;
    int fd = -1;
    std::byte* memory = nullptr;  // a write only reads it
    std::uint64_t bytes = 0;
    std::uint64_t offset_bytes = 0;  // in the file
    // More than 1 with O_DIRECT: a read ends inside a block only at the end of the file.
    std::uint64_t block_bytes = 1;
};

// How it ended.
struct FileMoved {
    std::uint64_t bytes = 0;
    std::uint32_t calls = 0;  // system calls it took
    int error_number = 0;     // the errno that ended it early; 0: all bytes moved, or a read met the end of the file
};

// A write that the system answers with no byte and no error ends with EIO.
FileMoved move_all(System& system, const FileMove& move);

// Whether an operation that failed with this errno is worth another try. Counts it in `retries`, which starts at 0 and
// is 0 again once bytes have moved, and waits a moment when the operation has failed often. Some file systems answer
// EAGAIN for ever: then it gives up.
bool try_again(int error_number, std::uint32_t& retries);

}  // namespace penstock::os
