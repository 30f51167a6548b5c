// What is asked of Linux, by system calls alone: libc's own functions would come back into this library. Nothing here
// allocates, throws or changes errno.
#pragma once

#include <cstdint>

#include "preload/ask/sequence.hpp"

namespace preload::kernel {

// Why the kernel is not asked for a file's bytes. `none`: it is.
enum class Why : std::uint8_t {
    none,
    small,             // less than `least_bytes` moved in order
    not_regular,       // a pipe, a terminal, a device
    in_memory,         // tmpfs and its kin: nothing to be early with
    unlinked,          // scratch without a name: it may never have to reach the disk
    synchronous,       // O_DIRECT, O_SYNC: the page cache holds nothing back
    kernel_reads_ahead,  // as far as this library would
    no_residency,      // nothing tells what the page cache holds
    no_thread,         // the system gave none
};
const char* words(Why why);

struct FileFacts {
    std::uint64_t device = 0, inode = 0;
    std::int64_t born_ns = 0;  // 0: not told
    std::int64_t bytes = 0;
    bool regular = false;
    int flags = 0;  // of open
};

bool stat(int fd, FileFacts& facts);
bool writes(const FileFacts& facts);  // opened to write
bool is_open(int fd);
int most_numbers();  // descriptors have lower ones
std::int64_t position(int fd);             // below 0: it has none
// Moves where the descriptor stands on or back, in one step among all who share it. Returns where it stood; below 0: it
// cannot be moved so.
std::int64_t advance(int fd, std::int64_t bytes);
// Where the kernel need not be asked at all.
Why unsuited(int fd, Direction direction);
// Whether nearly all of a span is in the page cache; below 0: not known.
int is_cached(int fd, Span span);
void start_writeback(int fd, Span span);  // takes no error: they wait for the program's own fsync or close
void read_ahead(int fd, Span span);
int flush(int fd);  // fsync: 0, or the error's number
int process();
int thread();  // the calling one's number
bool has_thread(int number);  // of this process; for a moment also one that has been joined
void rest();  // some 50 us
bool main_thread_is_gone();  // it has ended, and the process lives on by its other threads

// A file that is made new and gets its text: for the report.
bool write_file(const char* name, const char* text, std::uint64_t bytes);

void wait(const std::uint32_t* word, std::uint32_t seen);  // for a second at most
void wake(const std::uint32_t* word, int waiters = 1);

}  // namespace preload::kernel
