// See layout.hpp.
#include "formats/create/hdf5/layout.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "formats/create/hdf5/global_heap.hpp"
#include "formats/create/hdf5/messages.hpp"
#include "formats/create/hdf5/virtual/virtual_block.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kAlignedFromBytes = 64 * 1024;
constexpr std::uint64_t kPartLeftOut = 64;                 // one of so many, at most
constexpr std::uint64_t kLeastStripeBytes = 64 * 1024;     // of Lustre
constexpr std::uint64_t kMostMultiple = 16 * 1024 * 1024;  // stripes are rarely longer

// The shape of the grid of chunks of a dataset.
std::vector<std::uint64_t> grid_of(const Hdf5Dataset& dataset) {
    std::vector<std::uint64_t> grid;
    for (std::size_t i = 0; i < dataset.shape.size(); ++i)
        grid.push_back((dataset.shape[i] + dataset.chunk[i] - 1) / dataset.chunk[i]);
    return grid;
}

std::uint64_t stored_chunk_bytes(const Hdf5Dataset& dataset, std::size_t chunk) {
    constexpr std::uint64_t kChecksumBytes = 4;
    if (!dataset.stored_bytes.empty()) return dataset.stored_bytes.at(chunk);
    std::uint64_t bytes = element_count(dataset.chunk) * dataset.type.item_bytes;
    for (const data::Filter& filter : dataset.filters) bytes += filter.name == "fletcher32" ? kChecksumBytes : 0;
    return bytes;
}

// How many values of the attribute lie in the heap.
std::size_t kept_in_heap(const Hdf5Attribute& attribute) {
    if (attribute.holds == Hdf5Attribute::Holds::reference_lists) return attribute.lists.size();
    return attribute.holds == Hdf5Attribute::Holds::texts ? attribute.texts.size() : 0;
}

constexpr std::size_t kNoSources = ~std::size_t{0};

// Lays one tree out: first sizes and places, then the bytes, which name the places.
class TreeLayout {
  public:
    TreeLayout(const Hdf5Tree& tree, std::uint32_t half_entries);
    Hdf5Image take();

  private:
    struct TwoBlocks {
        std::vector<HeaderMessage> first{}, rest{};
        std::uint64_t rest_offset = 0;
    };
    bool has_index(ObjectNumber number) const;
    bool grows(ObjectNumber number) const { return grows_[number]; }
    IndexShape index_shape(const Hdf5Dataset& dataset) const;
    TwoBlocks header_of(ObjectNumber number) const;
    void place_header(ObjectNumber number);
    void place_heap();
    void place_data(ObjectNumber number);
    void fill_index(ObjectNumber number, ChunkIndex& index, FileRoom& room) const;
    void write_header(ObjectNumber number);
    void write_index(ObjectNumber number);
    void write_superblock();
    void write(std::uint64_t offset, std::span<const std::byte> bytes);

    const Hdf5Tree& tree_;
    FileRoom room_;
    std::uint32_t half_entries_;
    Hdf5Image image_{};
    std::vector<std::size_t> links_to_;
    std::vector<bool> grows_;
    std::vector<std::uint64_t> addresses_;       // of headers
    std::vector<std::uint64_t> rest_offsets_;    // of the second blocks of headers
    std::vector<std::uint64_t> data_addresses_;  // of elements, or of the roots of chunk indexes
    std::vector<FileRoom> index_rooms_;          // where the nodes of each index begin
    GlobalHeap heap_{};
    std::vector<std::vector<std::size_t>> lists_;  // in the heap, and texts, of each object
    std::vector<std::size_t> sources_;             // in the heap, the list of sources of each virtual dataset
};

std::uint64_t superblock_bytes(bool has_half_entries) { return has_half_entries ? 100 : 96; }

TreeLayout::TreeLayout(const Hdf5Tree& tree, std::uint32_t half_entries)
    : tree_(tree),
      half_entries_(half_entries == 0 ? kUsualHalfEntries : half_entries),
      links_to_(tree.objects.size()),
      grows_(tree.objects.size()),
      addresses_(tree.objects.size()),
      rest_offsets_(tree.objects.size()),
      data_addresses_(tree.objects.size(), kNoAddress),
      index_rooms_(tree.objects.size()),
      lists_(tree.objects.size()),
      sources_(tree.objects.size(), kNoSources) {
    ++links_to_[0];
    for (const ObjectNumber number : tree.growing) grows_.at(number) = true;
    for (const Hdf5Object& object : tree.objects) {
        for (const Hdf5Link& link : object.links)
            if (link.leads == Hdf5Link::Leads::to_object) ++links_to_.at(link.object);
        if (half_entries == 0 && !object.dataset.chunk.empty())
            half_entries_ = std::min(half_entries_, most_half_entries(object.dataset.chunk.size()));
    }
    room_.take(rounded_up(superblock_bytes(half_entries_ != kUsualHalfEntries), 8), 1);
    image_.objects.resize(tree.objects.size());
}

Hdf5Image TreeLayout::take() {
    for (const ObjectNumber number : tree_.growing) place_header(number);
    for (ObjectNumber number = 0; number < tree_.objects.size(); ++number)
        if (!grows(number)) place_header(number);
    for (const ObjectNumber number : tree_.growing) {
        rest_offsets_[number] = room_.take(encode_messages(header_of(number).rest).size(), 8);
    }
    place_heap();
    for (ObjectNumber number = 0; number < tree_.objects.size(); ++number) {
        if (!has_index(number)) continue;
        index_rooms_[number] = room_;
        image_.objects[number].data.resize(element_count(grid_of(tree_.objects[number].dataset)));
        ChunkIndex sized(index_shape(tree_.objects[number].dataset), room_);
        fill_index(number, sized, room_);
        data_addresses_[number] = sized.root();
    }
    image_.metadata.resize(room_.end_bytes());
    for (ObjectNumber number = 0; number < tree_.objects.size(); ++number) place_data(number);
    image_.end_bytes = room_.end_bytes();
    for (ObjectNumber number = 0; number < tree_.objects.size(); ++number) {
        write_header(number);
        if (has_index(number)) write_index(number);
    }
    for (const FileChange& part : heap_.collections(addresses_)) write(part.offset_bytes, part.bytes);
    write_superblock();
    return std::move(image_);
}

bool TreeLayout::has_index(ObjectNumber number) const {
    const Hdf5Object& object = tree_.objects[number];
    return !object.is_group && !object.dataset.chunk.empty() && object.dataset.has_data;
}

IndexShape TreeLayout::index_shape(const Hdf5Dataset& dataset) const {
    const bool may_grow = !dataset.most.empty() && dataset.most[0] == kNoLimit;
    const std::uint64_t end = rounded_up(dataset.shape[0], dataset.chunk[0]);
    const std::uint64_t most = kStepLimit / dataset.chunk[0] * dataset.chunk[0];
    return {dataset.chunk.size(), half_entries_, may_grow ? std::max(end, most) : end};
}

// Messages as they are with the places that are known by now. Their sizes do not depend on those.
TreeLayout::TwoBlocks TreeLayout::header_of(ObjectNumber number) const {
    const Hdf5Object& object = tree_.objects[number];
    TwoBlocks header;
    std::vector<HeaderMessage>& rest = header.rest;
    if (object.is_group) rest = group_messages(object.links, addresses_);
    if (!object.is_group) {
        rest = dataset_messages(object.dataset);
        const bool is_placed = sources_[number] != kNoSources;
        rest.insert(rest.begin(), object.dataset.sources.empty()
                                      ? layout_message(object.dataset, data_addresses_[number])
                                      : virtual_message(is_placed ? heap_.place(sources_[number]) : HeapPlace{}));
        header.first.push_back(dataspace_message(object.dataset));
    }
    std::vector<HeapPlace> places;
    for (const std::size_t list : lists_[number]) places.push_back(heap_.place(list));
    std::size_t seen = 0;
    for (const Hdf5Attribute& attribute : object.attributes) {
        const std::size_t lists = places.empty() ? 0 : kept_in_heap(attribute);
        rest.push_back(attribute_message(attribute, {addresses_, std::span(places).subspan(seen, lists)}));
        seen += lists;
    }
    if (grows(number)) {
        header.first.push_back(continuation_message(rest_offsets_[number], encode_messages(rest).size()));
    } else {
        header.first.insert(header.first.end(), rest.begin(), rest.end());
        rest.clear();
    }
    return header;
}

void TreeLayout::place_header(ObjectNumber number) {
    addresses_[number] = room_.take(kHeaderPrefixBytes + encode_messages(header_of(number).first).size(), 8);
    image_.objects[number].header_offset = addresses_[number];
}

void TreeLayout::place_heap() {
    for (ObjectNumber number = 0; number < tree_.objects.size(); ++number) {
        const Hdf5Dataset& dataset = tree_.objects[number].dataset;
        if (!dataset.sources.empty()) sources_[number] = heap_.add_text(virtual_block(dataset));
    }
    for (ObjectNumber number = 0; number < tree_.objects.size(); ++number)
        for (const Hdf5Attribute& attribute : tree_.objects[number].attributes)
            for (std::size_t i = 0; i < kept_in_heap(attribute); ++i)
                lists_[number].push_back(attribute.holds == Hdf5Attribute::Holds::texts
                                             ? heap_.add_text(attribute.texts[i])
                                             : heap_.add(attribute.lists[i]));
    heap_.place_in(room_);
}

void TreeLayout::place_data(ObjectNumber number) {
    const Hdf5Object& object = tree_.objects[number];
    if (object.is_group || !object.dataset.has_data || !object.dataset.sources.empty()) return;
    std::vector<DataPlace>& data = image_.objects[number].data;
    if (!has_index(number)) {
        const std::uint64_t bytes = element_count(object.dataset.shape) * object.dataset.type.item_bytes;
        data.push_back({take_for_data(room_, bytes), bytes});
        if (bytes != 0) data_addresses_[number] = data[0].offset_bytes;
        return;
    }
    for (std::size_t i = 0; i < data.size(); ++i) {
        const std::uint64_t bytes = stored_chunk_bytes(object.dataset, i);
        data[i] = {take_for_data(room_, bytes), bytes};
    }
}

void TreeLayout::fill_index(ObjectNumber number, ChunkIndex& index, FileRoom& room) const {
    const Hdf5Dataset& dataset = tree_.objects[number].dataset;
    const std::vector<std::uint64_t> grid = grid_of(dataset);
    const std::vector<DataPlace>& data = image_.objects[number].data;
    std::vector<std::uint64_t> at(grid.size());
    const auto elements = [&] {
        std::vector<std::uint64_t> first(at);
        for (std::size_t i = 0; i < at.size(); ++i) first[i] *= dataset.chunk[i];
        return first;
    };
    for (const DataPlace& place : data) {
        IndexEntry entry{.first = elements(), .offset_bytes = place.offset_bytes, .stored_bytes = place.bytes};
        for (std::size_t i = at.size(); i-- > 0;) {
            if (++at[i] < grid[i] || i == 0) break;
            at[i] = 0;
        }
        entry.next = elements();
        index.reserve(room);
        index.append(entry);
    }
}

void TreeLayout::write_index(ObjectNumber number) {
    FileRoom room = index_rooms_[number];
    ChunkIndex index(index_shape(tree_.objects[number].dataset), room);
    fill_index(number, index, room);
    for (const FileChange& node : index.take_changes().unseen) write(node.offset_bytes, node.bytes);
    if (grows(number)) image_.objects[number].index.emplace(std::move(index));
}

void TreeLayout::write_header(ObjectNumber number) {
    const TwoBlocks header = header_of(number);
    PlacedObject& placed = image_.objects[number];
    const std::vector<std::byte> first = encode_messages(header.first), rest = encode_messages(header.rest);
    write(placed.header_offset,
          encode_prefix({header.first.size() + header.rest.size(), links_to_[number], first.size()}));
    write(placed.header_offset + kHeaderPrefixBytes, first);
    if (!grows(number)) return;
    write(rest_offsets_[number], rest);
    placed.length_offset = placed.header_offset + kHeaderPrefixBytes + kMessageHeadBytes + kFirstLengthOffset;
    placed.root_offset = rest_offsets_[number] + kMessageHeadBytes + kRootFieldOffset;
}

void TreeLayout::write_superblock() {
    constexpr unsigned kGroupLeafHalf = 4, kGroupInternalHalf = 16;  // of groups that have none of our links
    const bool has_half_entries = half_entries_ != kUsualHalfEntries;
    Hdf5Encoder out;
    out.text("\x89HDF\r\n\x1a\n").number(has_half_entries ? 1 : 0, 1).number(0, 4);
    out.number(8, 1).number(8, 1).number(0, 1);  // bytes of an offset and of a length
    out.number(kGroupLeafHalf, 2).number(kGroupInternalHalf, 2).number(0, 4);
    if (has_half_entries) out.number(half_entries_, 2).number(0, 2);
    out.address(0).address(kNoAddress);
    image_.end_field_offset = out.size();
    out.address(image_.end_bytes).address(kNoAddress);
    out.number(0, 8).address(addresses_[0]).number(0, 4).number(0, 4).number(0, 8).number(0, 8);
    write(0, out.take());
}

void TreeLayout::write(std::uint64_t offset, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), image_.metadata.begin() + static_cast<std::ptrdiff_t>(offset));
}

}  // namespace

bool is_aligned(std::uint64_t bytes) { return bytes >= kAlignedFromBytes; }

std::uint64_t data_multiple(std::uint64_t bytes) {
    if (!is_aligned(bytes)) return 8;
    const std::uint64_t part = std::min(std::bit_floor(bytes / kPartLeftOut), kMostMultiple);
    return part < kLeastStripeBytes ? kFilePageBytes : part;
}

std::uint64_t take_for_data(FileRoom& room, std::uint64_t bytes) { return room.take(bytes, data_multiple(bytes)); }

Hdf5Image lay_out(const Hdf5Tree& tree, std::uint32_t half_entries) { return TreeLayout(tree, half_entries).take(); }

void write_last_byte(const Hdf5Image& image, ByteSink& sink) {
    if (image.end_bytes > image.metadata.size()) sink.write(image.end_bytes - 1, std::vector<std::byte>(1));
}

void write_metadata(const Hdf5Image& image, ByteSink& sink) {
    const std::span<const std::byte> metadata = image.metadata;
    const std::uint64_t first = std::min<std::uint64_t>(metadata.size(), kFilePageBytes);
    if (metadata.size() > first) sink.write(first, metadata.subspan(first));
    sink.barrier();
    sink.write(0, metadata.first(first));
    sink.barrier();
}

}  // namespace penstock::formats
