// Shards: chunk files of a Zarr array that hold several chunks each, with an index of where those lie.
//
// What must stay true: a place that an index gives lies in its file; an index is read anew once its file is another one
// or has changed; what is kept of them is bounded.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "formats/container.hpp"
#include "formats/faults.hpp"

namespace penstock::formats {

struct Sharding {
    std::vector<std::int64_t> chunks{};  // of a shard, in each dimension; none: each chunk is a file of its own
    bool is_index_first = false;         // in the file; else last
    bool is_index_big_endian = false;
    bool is_index_summed = false;  // by a crc32c behind it

    bool shares_files() const noexcept { return !chunks.empty(); }
    std::uint64_t chunks_of_shard() const noexcept;
    std::uint64_t index_bytes() const noexcept;  // 16 for each chunk, and 4 of the sum
};

class ShardIndexes {
  public:
    // Where the chunk of that number lies in the shard `shard.file`; nothing where it is not stored. Safe for threads.
    // Throws Error of a file that cannot be read or is damaged.
    std::optional<ChunkPlace> place(const Subject& shard, const Sharding& sharding, std::uint64_t chunk);

  private:
    struct Index {
        std::string file;
        dev_t device = 0;
        ino_t inode = 0;
        std::uint64_t file_bytes = 0;
        std::int64_t changed_ns = 0;
        std::vector<std::uint64_t> places{};  // offset and bytes of each chunk
    };
    const Index& index_of(const Subject& shard, const Sharding& sharding);
    static void read(const Subject& shard, const Sharding& sharding, Index& index);

    std::mutex mutex_;
    std::list<Index> kept_;  // guarded by mutex_; the one that was used last comes first
};

}  // namespace penstock::formats
