// Version2Tree: a B-tree of version 2: sorted records of one size, which name links or chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "formats/hdf5/metadata_blocks.hpp"

namespace penstock::formats {

class Version2Tree {
  public:
    // Throws BadStructure.
    Version2Tree(const MetadataBlocks& blocks, std::uint64_t header);

    std::uint64_t type() const noexcept { return type_; }
    std::uint64_t record_bytes() const noexcept { return record_bytes_; }

    using Take = std::function<void(StructureFields record)>;
    // All records, in their order. Throws BadStructure.
    void for_each(const Take& take) const;
    // `side` tells whether the record that is looked for lies before (-1), at (0) or behind (1) the given one. Null: no
    // record is it. Throws BadStructure.
    using Side = std::function<int(StructureFields record)>;
    std::optional<std::vector<std::byte>> find(const Side& side) const;

  private:
    // What a node of a level may have.
    struct NodeLevel {
        std::uint64_t most_records = 0, pointer_bytes = 0;
        unsigned total_bytes = 0;  // of the number of records below
    };
    struct NodePlace {
        std::uint64_t address = 0, records = 0;
    };
    // A node: `bytes` keeps its records.
    struct TreeNode {
        BlockBytes bytes{};
        std::span<const std::byte> records{};
        std::vector<NodePlace> children{};  // none of a leaf
    };
    TreeNode node(const NodePlace& place, std::size_t level) const;
    StructureFields record(const TreeNode& node, std::uint64_t index) const;
    struct Walk {
        const Take& take;
        std::set<std::uint64_t> seen{};
    };
    void walk(const NodePlace& place, std::size_t level, Walk& walk) const;

    const MetadataBlocks& blocks_;
    std::uint64_t type_ = 0, node_bytes_ = 0, record_bytes_ = 0;
    unsigned count_bytes_ = 0;         // of the number of records of a node
    std::vector<NodeLevel> levels_{};  // the leaves' first
    std::optional<NodePlace> root_{};
};

}  // namespace penstock::formats
