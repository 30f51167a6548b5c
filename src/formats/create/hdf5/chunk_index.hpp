// ChunkIndex: where the chunks of a dataset lie, as a B-tree of version 1 that grows at its end.
//
// A file that a process leaves at any moment must be readable. So the index tells apart what no reader sees yet (new
// nodes, and entries behind the count of a node) from what shows it to them (counts, the link to a new node, the root):
// fields of 2 or 8 bytes, each in one page of the file. A full node is left as it is, and a new one begins behind it.
// Entries come in the order of their offsets. A node never straddles a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace penstock::formats {

inline constexpr std::uint64_t kFilePageBytes = 4096;
inline constexpr std::uint64_t kStepLimit = 0x7FFFFFFF;  // readers keep numbers of elements in signed integers

// Bytes of a file that nothing has taken yet.
class FileRoom {
  public:
    explicit FileRoom(std::uint64_t end_bytes = 0) : end_bytes_(end_bytes) {}
    std::uint64_t take(std::uint64_t bytes, std::uint64_t multiple);
    std::uint64_t take_within_page(std::uint64_t bytes);  // Requires: at most a page
    std::uint64_t end_bytes() const noexcept { return end_bytes_; }

  private:
    std::uint64_t end_bytes_;
};

struct FileChange {
    std::uint64_t offset_bytes = 0;
    std::vector<std::byte> bytes{};
};

struct IndexChanges {
    std::vector<FileChange> unseen{};  // by readers, until shown ones are written
    std::vector<FileChange> shown{};   // in this order
    bool has_new_nodes = false;
    bool has_new_root = false;  // the dataset must name root() before readers see what was added since
};

struct IndexShape {
    std::size_t dimensions = 0;      // of the dataset
    std::uint32_t half_entries = 0;  // a node has at most twice as many: the "K" of the superblock
    std::uint64_t end = 0;           // no chunk begins there in the first dimension, and none behind
};

struct IndexEntry {
    std::vector<std::uint64_t> first{};  // element of the chunk
    std::vector<std::uint64_t> next{};   // the first element of the chunk that would come behind it
    std::uint64_t offset_bytes = 0;
    std::uint64_t stored_bytes = 0;
};

std::uint64_t index_node_bytes(const IndexShape& shape);
// The largest half whose nodes fit a page, at most what the HDF5 library takes where a file tells none.
std::uint32_t most_half_entries(std::size_t dimensions);
inline constexpr std::uint32_t kUsualHalfEntries = 32;

class ChunkIndex {
  public:
    ChunkIndex(const IndexShape& shape, FileRoom& room);  // an empty root, which is the first new node
    // Takes room for the nodes that one more entry needs. How much follows from the number of entries alone.
    void reserve(FileRoom& room);
    void append(const IndexEntry& entry);  // Requires: as many calls of reserve() before
    std::uint64_t root() const noexcept { return spine_.back().offset_bytes; }
    IndexChanges take_changes();  // since the last call

  private:
    using Bytes = std::vector<std::byte>;
    struct IndexNode {  // the last one of its level
        std::uint64_t offset_bytes = 0;
        std::uint32_t count = 0, told = 0;  // entries; those that earlier changes have
        bool is_new = true, has_new_sibling = false;
        Bytes image{};
    };
    struct IndexChild {
        Bytes key;
        std::uint64_t offset_bytes;
        Bytes next_key;
    };
    IndexNode make_node(std::size_t level, std::uint64_t offset_bytes) const;
    std::uint64_t next_place();
    void add(std::size_t level, const IndexChild& child);
    void put(IndexNode& node, const IndexChild& child) const;
    void tell(IndexNode& node);
    Bytes key_of(std::span<const std::uint64_t> first, std::uint64_t stored_bytes) const;
    Bytes end_key() const;
    std::uint64_t key_offset(std::uint32_t entry) const;

    IndexShape shape_;
    std::uint64_t key_bytes_;
    std::vector<IndexNode> spine_{};              // by level, leaves first
    std::vector<std::uint32_t> reserved_counts_;  // of the nodes of the spine, once all that is reserved is appended
    std::deque<std::uint64_t> places_{};          // of nodes, in the order in which append() will make them
    IndexChanges changes_{};
};

}  // namespace penstock::formats
