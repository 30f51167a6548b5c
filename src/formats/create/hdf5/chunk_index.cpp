// See chunk_index.hpp.
#include "formats/create/hdf5/chunk_index.hpp"

#include <algorithm>
#include <utility>

#include "formats/create/hdf5/encoder.hpp"

namespace penstock::formats {
namespace {

// Fields of a node: "TREE", type, level, count, left and right neighbours.
constexpr std::uint64_t kCountOffset = 6, kRightOffset = 16, kNodeHeadBytes = 24;
constexpr std::uint64_t kAddressBytes = 8;

std::uint64_t key_size(std::size_t dimensions) { return 8 + 8 * (dimensions + 1); }

}  // namespace

std::uint64_t FileRoom::take(std::uint64_t bytes, std::uint64_t multiple) {
    const std::uint64_t begin = rounded_up(end_bytes_, multiple);
    end_bytes_ = begin + bytes;
    return begin;
}

std::uint64_t FileRoom::take_within_page(std::uint64_t bytes) {
    const std::uint64_t begin = rounded_up(end_bytes_, 8);
    const bool straddles = begin / kFilePageBytes != (begin + bytes - 1) / kFilePageBytes;
    return take(bytes, straddles ? kFilePageBytes : 8);
}

std::uint64_t index_node_bytes(const IndexShape& shape) {
    const std::uint64_t entries = 2 * std::uint64_t{shape.half_entries};
    return kNodeHeadBytes + entries * kAddressBytes + (entries + 1) * key_size(shape.dimensions);
}

std::uint32_t most_half_entries(std::size_t dimensions) {
    const std::uint64_t key = key_size(dimensions);
    const std::uint64_t entries = (kFilePageBytes - kNodeHeadBytes - key) / (kAddressBytes + key);
    return std::min(static_cast<std::uint32_t>(entries / 2), kUsualHalfEntries);
}

ChunkIndex::ChunkIndex(const IndexShape& shape, FileRoom& room)
    : shape_(shape), key_bytes_(key_size(shape.dimensions)), reserved_counts_(1) {
    spine_.push_back(make_node(0, room.take_within_page(index_node_bytes(shape))));
}

// As add() does it: a node beside a full one, and a root above where the full one was the root.
void ChunkIndex::reserve(FileRoom& room) {
    const std::uint64_t bytes = index_node_bytes(shape_);
    for (std::size_t level = 0;; ++level) {
        if (reserved_counts_[level] < 2 * shape_.half_entries) {
            ++reserved_counts_[level];
            return;
        }
        reserved_counts_[level] = 1;
        places_.push_back(room.take_within_page(bytes));
        if (level + 1 < reserved_counts_.size()) continue;
        reserved_counts_.push_back(1);
        places_.push_back(room.take_within_page(bytes));
    }
}

void ChunkIndex::append(const IndexEntry& entry) {
    add(0, {key_of(entry.first, entry.stored_bytes), entry.offset_bytes, key_of(entry.next, 0)});
}

std::uint64_t ChunkIndex::next_place() {
    const std::uint64_t place = places_.front();
    places_.pop_front();
    return place;
}

IndexChanges ChunkIndex::take_changes() {
    for (IndexNode& node : spine_) tell(node);
    return std::exchange(changes_, {});
}

ChunkIndex::IndexNode ChunkIndex::make_node(std::size_t level, std::uint64_t offset_bytes) const {
    constexpr unsigned kOfChunks = 1;
    Hdf5Encoder head;
    head.text("TREE").number(kOfChunks, 1).number(level, 1).number(0, 2).address(kNoAddress).address(kNoAddress);
    IndexNode node;
    node.image = head.take();
    node.image.resize(index_node_bytes(shape_));
    node.offset_bytes = offset_bytes;
    return node;
}

void ChunkIndex::add(std::size_t level, const IndexChild& child) {
    if (spine_[level].count < 2 * shape_.half_entries) return put(spine_[level], child);
    IndexNode old = std::exchange(spine_[level], make_node(level, next_place()));
    IndexNode& fresh = spine_[level];
    put(fresh, child);
    const std::span<std::byte> left = std::span(fresh.image).subspan(kRightOffset - kAddressBytes, kAddressBytes);
    store_number(left, old.offset_bytes);
    store_number(std::span(old.image).subspan(kRightOffset, kAddressBytes), fresh.offset_bytes);
    old.has_new_sibling = true;
    tell(old);
    const std::uint64_t fresh_offset = fresh.offset_bytes;
    if (level + 1 == spine_.size()) {
        const auto first = old.image.begin() + kNodeHeadBytes;
        const Bytes first_key(first, first + static_cast<std::ptrdiff_t>(key_bytes_));
        spine_.push_back(make_node(level + 1, next_place()));
        put(spine_.back(), {first_key, old.offset_bytes, end_key()});
        changes_.has_new_root = true;
    }
    add(level + 1, {child.key, fresh_offset, end_key()});
}

// The key behind the entry is behind whatever its child will hold. It changes to that of the next entry, before readers
// see that one: what they looked for until now lies before both.
void ChunkIndex::put(IndexNode& node, const IndexChild& child) const {
    const auto at = node.image.begin() + static_cast<std::ptrdiff_t>(key_offset(node.count));
    std::copy(child.key.begin(), child.key.end(), at);
    const std::span<std::byte> rest = std::span(node.image).subspan(key_offset(node.count) + key_bytes_);
    store_number(rest.first(kAddressBytes), child.offset_bytes);
    std::copy(child.next_key.begin(), child.next_key.end(), rest.begin() + kAddressBytes);
    ++node.count;
    store_number(std::span(node.image).subspan(kCountOffset, 2), node.count);
}

void ChunkIndex::tell(IndexNode& node) {
    const auto part = [&](std::uint64_t from, std::uint64_t to) {
        const auto begin = node.image.begin();
        return FileChange{node.offset_bytes + from,
                          Bytes(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to))};
    };
    if (node.is_new) {
        changes_.unseen.push_back({node.offset_bytes, node.image});
        changes_.has_new_nodes = true;
    } else if (node.told < node.count) {
        changes_.unseen.push_back(part(key_offset(node.told), key_offset(node.count) + key_bytes_));
        changes_.shown.push_back(part(kCountOffset, kCountOffset + 2));
    }
    if (node.has_new_sibling && !node.is_new)
        changes_.shown.push_back(part(kRightOffset, kRightOffset + kAddressBytes));
    node.is_new = node.has_new_sibling = false;
    node.told = node.count;
}

ChunkIndex::Bytes ChunkIndex::key_of(std::span<const std::uint64_t> first, std::uint64_t stored_bytes) const {
    Hdf5Encoder out;
    out.number(stored_bytes, 4).number(0, 4);
    for (const std::uint64_t one : first) out.number(one, 8);
    return out.number(0, 8).take();
}

ChunkIndex::Bytes ChunkIndex::end_key() const {
    std::vector<std::uint64_t> first(shape_.dimensions);
    first[0] = shape_.end;
    return key_of(first, 0);
}

std::uint64_t ChunkIndex::key_offset(std::uint32_t entry) const {
    return kNodeHeadBytes + entry * (key_bytes_ + kAddressBytes);
}

}  // namespace penstock::formats
