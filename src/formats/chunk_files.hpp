// Files of chunks that a dataset lies in, open no longer and no more of them than the descriptors of the process allow.
//
// A box that is read often lies in the same few files: to open one takes longer than to read some KiB of it. What must
// stay true: a name that another file has taken meanwhile is opened anew; of all files that are kept here and held by
// batches of one read, there are fewer than the limit of the process allows.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <list>
#include <mutex>
#include <string>

#include "penstock/context.hpp"

namespace penstock::formats {

// How many files one batch of a read or write may hold open; two batches are under way. The free descriptors of the
// process are counted when a batch asks for more than a few files: others may hold most of them, a GPU's driver too.
class FilesOfBatch {
  public:
    bool is_full(std::size_t files) noexcept;

  private:
    std::size_t most_ = 4;
    bool is_counted_ = false;
};

class ChunkFiles {
  public:
    ChunkFiles(const Context& context, bool writable) : context_(context), writable_(writable) {}
    ChunkFiles(const ChunkFiles&) = delete;
    ChunkFiles& operator=(const ChunkFiles&) = delete;

    // Safe for threads. Throws Error of a file that cannot be opened.
    File of(const std::string& name);

  private:
    struct Kept {
        std::string name;
        dev_t device = 0;
        ino_t inode = 0;
        File file;
    };
    File open(const std::string& name);

    const Context context_;
    const bool writable_;
    std::mutex mutex_;
    std::list<Kept> kept_;  // guarded by mutex_; the one that was used last comes first
};

}  // namespace penstock::formats
