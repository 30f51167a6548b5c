// MetadataBlocks: the structures of an HDF5 file, fetched by their address and checked.
//
// Any number of threads may ask at once. What must stay true, whatever bytes the file has: no block that leaves the
// file is fetched, so that no more memory is taken than the file has bytes; a block with a checksum is handed out only
// if it is right.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/hdf5/structure.hpp"
#include "formats/source.hpp"

namespace penstock::formats {

// Addresses count from `base`, which is not 0 behind a user block; the file's own bytes end at `end`.
struct FileFrame {
    std::uint64_t base = 0, end = 0;
    FieldSizes sizes{};
};

using BlockBytes = std::shared_ptr<const std::vector<std::byte>>;

class MetadataBlocks {
  public:
    // Requires: the source outlives this.
    MetadataBlocks(const ByteSource& source, const FileFrame& frame) : source_(source), frame_(frame) {}
    MetadataBlocks(const MetadataBlocks&) = delete;
    MetadataBlocks& operator=(const MetadataBlocks&) = delete;

    FieldSizes sizes() const noexcept { return frame_.sizes; }
    // Where they lie in the file. Throws BadStructure where they leave it.
    std::uint64_t place(std::uint64_t address, std::uint64_t bytes) const;
    // Throws BadStructure; `what` is the structure's name.
    BlockBytes block(std::uint64_t address, std::uint64_t bytes, std::string_view what) const;
    // As block(), but fewer bytes where the file ends.
    BlockBytes begin_of(std::uint64_t address, std::uint64_t most_bytes, std::string_view what) const;
    // A block whose last four bytes are the checksum of the others. `signature`: its first four.
    BlockBytes checked(std::uint64_t address, std::uint64_t bytes, std::string_view signature) const;
    // Requires: the block outlives the fields.
    StructureFields fields(const BlockBytes& block, std::string_view what) const {
        return {*block, frame_.sizes, what};
    }
    StructureFields fields(BlockBytes&& block, std::string_view what) const = delete;

  private:
    struct Key {
        std::uint64_t address, bytes;
        bool is_checked;
        auto operator<=>(const Key&) const = default;
    };
    BlockBytes fetch(const Key& key, std::string_view what) const;

    const ByteSource& source_;
    const FileFrame frame_;
    mutable std::mutex mutex_;
    mutable std::map<Key, BlockBytes> kept_;  // guarded by mutex_
    mutable std::uint64_t kept_bytes_ = 0;    // guarded by mutex_
};

// Throws BadStructure unless the structure begins with these four letters.
void need_signature(StructureFields& fields, std::string_view signature);

}  // namespace penstock::formats
