// See fractal_heap.hpp.
#include "formats/hdf5/groups/fractal_heap.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "formats/hdf5/lookup3.hpp"

namespace penstock::formats {
namespace {

constexpr const char* kHeapWhat = "a fractal heap";
constexpr std::uint64_t kMostRows = 64, kMostHeapBits = 64;

}  // namespace

FractalHeap::FractalHeap(const MetadataBlocks& blocks, std::uint64_t header) : blocks_(blocks) {
    constexpr std::uint64_t kSummed = 2;
    const FieldSizes sizes = blocks.sizes();
    const std::uint64_t bytes = 26 + 12 * sizes.length + 3 * sizes.address;
    // One of filters is longer, and refused by what its first fields say.
    const BlockBytes first = blocks.block(header, 9, kHeapWhat);
    StructureFields begin = blocks.fields(first, kHeapWhat);
    need_signature(begin, "FRHP");
    begin.skip(3);
    if (begin.number(2) != 0) throw_unsupported("a group keeps its links in a heap that went through filters");
    const BlockBytes block = blocks.checked(header, bytes, "FRHP");
    StructureFields fields = blocks.fields(block, kHeapWhat);
    fields.skip(4);
    if (const std::uint64_t version = fields.number(1); version != 0)
        throw_unsupported("a fractal heap has version " + std::to_string(version));
    id_bytes_ = fields.number(2);
    fields.skip(2);
    has_sums_ = (fields.number(1) & kSummed) != 0;
    const std::uint64_t most_managed = fields.number(4);
    fields.skip(10 * sizes.length + 2 * sizes.address);
    width_ = fields.number(2);
    first_block_bytes_ = fields.length();
    most_direct_bytes_ = fields.length();
    const std::uint64_t heap_bits = fields.number(2);
    fields.skip(2);
    const std::optional<std::uint64_t> root = fields.address();
    root_rows_ = fields.number(2);
    const bool is_sane = std::has_single_bit(width_) && std::has_single_bit(first_block_bytes_) &&
                         std::has_single_bit(most_direct_bytes_) && first_block_bytes_ <= most_direct_bytes_ &&
                         heap_bits <= kMostHeapBits && heap_bits != 0 && root_rows_ <= kMostRows && most_managed != 0;
    if (!is_sane) fields.wrong("has sizes that make no sense");
    if (!root) fields.wrong("has no blocks");
    root_ = *root;
    offset_bytes_ = (heap_bits + 7) / 8;
    length_bytes_ = std::min(bytes_for(most_direct_bytes_), bytes_for(most_managed));
}

FractalHeap::HeapRow FractalHeap::row(std::uint64_t number) const {
    if (number == 0) return {0, first_block_bytes_};
    const auto doubled = static_cast<int>(number - 1);
    if (doubled >= std::countl_zero(checked_product(width_, first_block_bytes_)))
        throw_damaged(std::string(kHeapWhat) + " has a row beyond 64 bits");
    return {width_ * first_block_bytes_ << doubled, first_block_bytes_ << doubled};
}

FractalHeap::DirectBlock FractalHeap::direct_block(std::uint64_t offset) const {
    if (root_rows_ == 0) return {root_, first_block_bytes_, 0};
    const std::uint64_t direct_rows = log2_below(most_direct_bytes_ / first_block_bytes_) + 2;
    std::uint64_t address = root_, rows = root_rows_, begin = 0;
    for (std::uint64_t level = 0; level <= kMostRows; ++level) {
        std::uint64_t number = 0;
        while (number + 1 < rows && row(number + 1).begin <= offset - begin) ++number;
        const HeapRow found = row(number);
        const std::uint64_t column = (offset - begin - found.begin) / found.block_bytes;
        if (column >= width_) throw_damaged("a link lies behind the end of its heap");
        const std::uint64_t prefix = 5 + blocks_.sizes().address + offset_bytes_;
        const std::uint64_t bytes = prefix + rows * width_ * blocks_.sizes().address + 4;
        const BlockBytes block = blocks_.checked(address, bytes, "FHIB");
        StructureFields fields = blocks_.fields(block, "an indirect block of a heap");
        fields.skip(prefix + (number * width_ + column) * blocks_.sizes().address);
        address = fields.needed_address();
        begin += found.begin + column * found.block_bytes;
        if (number < direct_rows) return {address, found.block_bytes, begin};
        const unsigned first_row_bits = log2_below(first_block_bytes_) + log2_below(width_);
        if (log2_below(found.block_bytes) < first_row_bits) throw_damaged("a heap has an indirect block of no rows");
        rows = log2_below(found.block_bytes) - first_row_bits + 1;
    }
    throw_damaged("a heap has more levels than it has bits");
}

std::vector<std::byte> FractalHeap::object(std::span<const std::byte> id) const {
    constexpr std::uint64_t kKindShift = 4, kManaged = 0;
    StructureFields fields(id, blocks_.sizes(), "the number of a link in a heap");
    const std::uint64_t kind = fields.number(1) >> kKindShift & 3;
    if (kind != kManaged)
        throw_unsupported("a link of a group is kept outside of the group's heap", "read it from Python");
    const std::uint64_t offset = fields.number(offset_bytes_), bytes = fields.number(length_bytes_);
    const DirectBlock place = direct_block(offset);
    const std::uint64_t within = offset - place.begin;
    if (within > place.bytes || bytes > place.bytes - within) fields.wrong("leaves its block");
    const BlockBytes block = blocks_.block(place.address, place.bytes, "a block of a heap");
    StructureFields begin = blocks_.fields(block, "a block of a heap");
    need_signature(begin, "FHDB");
    if (has_sums_) {
        begin.skip(1 + blocks_.sizes().address + offset_bytes_);
        std::vector<std::byte> zeroed = *block;
        const std::size_t at = begin.at();
        const std::uint64_t sum = begin.number(4);
        std::fill_n(zeroed.begin() + static_cast<std::ptrdiff_t>(at), 4, std::byte{0});
        if (lookup3(zeroed) != sum) throw_damaged("the checksum of a block of a heap is wrong");
    }
    const auto found = std::span(*block).subspan(within, bytes);
    return {found.begin(), found.end()};
}

}  // namespace penstock::formats
