// See version2_tree.hpp.
#include "formats/hdf5/index/version2_tree.hpp"

#include <string>

namespace penstock::formats {
namespace {

constexpr const char *kTreeWhat = "a B-tree of version 2", *kRecordWhat = "a record of a B-tree of version 2";
constexpr std::uint64_t kNodeOverhead = 10;  // signature, version, type and checksum
constexpr std::uint64_t kMostTreeDepth = 32;

}  // namespace

Version2Tree::Version2Tree(const MetadataBlocks& blocks, std::uint64_t header) : blocks_(blocks) {
    const FieldSizes sizes = blocks.sizes();
    const std::uint64_t header_bytes = 22 + sizes.address + sizes.length;
    const BlockBytes bytes = blocks.checked(header, header_bytes, "BTHD");
    StructureFields fields = blocks.fields(bytes, kTreeWhat);
    fields.skip(4);
    if (const std::uint64_t version = fields.number(1); version != 0)
        throw_unsupported("a B-tree has version 2." + std::to_string(version));
    type_ = fields.number(1);
    node_bytes_ = fields.number(4);
    record_bytes_ = fields.number(2);
    const std::uint64_t depth = fields.number(2);
    fields.skip(2);
    const std::optional<std::uint64_t> root = fields.address();
    const std::uint64_t root_records = fields.number(2);
    if (record_bytes_ == 0 || node_bytes_ < kNodeOverhead + record_bytes_ || depth > kMostTreeDepth)
        fields.wrong("has nodes of " + std::to_string(node_bytes_) + " bytes, records of " +
                     std::to_string(record_bytes_) + " and " + std::to_string(depth) + " levels");
    std::uint64_t total = (node_bytes_ - kNodeOverhead) / record_bytes_;
    levels_.push_back({.most_records = total});
    count_bytes_ = bytes_for(total);
    for (std::uint64_t level = 1; level <= depth; ++level) {
        NodeLevel made{.total_bytes = level == 1 ? 0 : bytes_for(total)};
        made.pointer_bytes = sizes.address + count_bytes_ + made.total_bytes;
        if (node_bytes_ < kNodeOverhead + made.pointer_bytes) fields.wrong("has nodes that are too small");
        made.most_records = (node_bytes_ - kNodeOverhead - made.pointer_bytes) / (record_bytes_ + made.pointer_bytes);
        // Beyond 64 bits the width of the number stays 8 bytes.
        std::uint64_t below = 0;
        const bool is_beyond = __builtin_mul_overflow(made.most_records + 1, total, &below) ||
                               __builtin_add_overflow(below, made.most_records, &total);
        if (is_beyond) total = ~std::uint64_t{0};
        levels_.push_back(made);
    }
    if (root && root_records != 0) root_ = NodePlace{*root, root_records};
}

Version2Tree::TreeNode Version2Tree::node(const NodePlace& place, std::size_t level) const {
    const NodeLevel& shape = levels_[level];
    if (place.records > shape.most_records) throw_damaged(std::string(kTreeWhat) + " has a node that is too full");
    const std::uint64_t records_bytes = place.records * record_bytes_;
    const std::uint64_t pointers = level == 0 ? 0 : place.records + 1;
    const std::uint64_t all = kNodeOverhead + records_bytes + pointers * shape.pointer_bytes;
    TreeNode found{.bytes = blocks_.checked(place.address, all, level == 0 ? "BTLF" : "BTIN")};
    StructureFields fields = blocks_.fields(found.bytes, kTreeWhat);
    fields.skip(5);
    if (fields.number(1) != type_) fields.wrong("has a node of another type");
    found.records = fields.take(records_bytes);
    for (std::uint64_t i = 0; i < pointers; ++i) {
        NodePlace child{fields.needed_address(), fields.number(count_bytes_)};
        fields.skip(shape.total_bytes);
        found.children.push_back(child);
    }
    return found;
}

StructureFields Version2Tree::record(const TreeNode& node, std::uint64_t index) const {
    return {node.records.subspan(index * record_bytes_, record_bytes_), blocks_.sizes(), kRecordWhat};
}

void Version2Tree::walk(const NodePlace& place, std::size_t level, Walk& walk) const {
    if (!walk.seen.insert(place.address).second) throw_damaged(std::string(kTreeWhat) + " has a node twice");
    const TreeNode found = node(place, level);
    for (std::uint64_t i = 0; i <= place.records; ++i) {
        if (level != 0) this->walk(found.children[i], level - 1, walk);
        if (i < place.records) walk.take(record(found, i));
    }
}

void Version2Tree::for_each(const Take& take) const {
    Walk walk{take};
    if (root_) this->walk(*root_, levels_.size() - 1, walk);
}

std::optional<std::vector<std::byte>> Version2Tree::find(const Side& side) const {
    if (!root_) return std::nullopt;
    NodePlace place = *root_;
    for (std::size_t level = levels_.size(); level-- > 0;) {
        const TreeNode found = node(place, level);
        std::uint64_t low = 0, high = place.records;  // the first record that is not before it lies in [low, high]
        while (low < high) {
            const std::uint64_t middle = (low + high) / 2;
            const int where = side(record(found, middle));
            if (where == 0) {
                const auto bytes = found.records.subspan(middle * record_bytes_, record_bytes_);
                return std::vector<std::byte>(bytes.begin(), bytes.end());
            }
            where > 0 ? low = middle + 1 : high = middle;
        }
        if (level != 0) place = found.children[low];
    }
    return std::nullopt;
}

}  // namespace penstock::formats
