// Box: a strided copy as data, which is how the layouts of arrays look to a device.
//
// A box is a grid of items of equal size and the place of each item on two sides. Items have no order: a device moves
// them in any, and many boxes at once. So the items of a destination may not overlap, and a box may read what it or
// another box of the same call writes only in one case: destination and source are the same memory with the same
// strides, which swaps the byte order in place. The functions here are pure: no device, no memory is touched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "penstock/types.hpp"

namespace penstock {

inline constexpr std::size_t kBoxDimensions = 6;              // of one Box; split_box takes more
inline constexpr std::size_t kArrayDimensions = 64;           // of split_box: what NumPy allows
inline constexpr std::uint64_t kFillItemBytes = 64 * kKiB;    // largest item of a fill

struct Box {
    void* destination = nullptr;   // of the first item
    const void* source = nullptr;  // of the first item; a fill does not look at it
    std::uint64_t item_bytes = 1;  // a whole number of words when swapped
    std::uint32_t dimensions = 0;  // 0: one item
    std::uint32_t swap_bytes = 0;  // 2, 4, 8, 16: the bytes of each such word are reversed on the way; 0: none are
    std::array<std::uint64_t, kBoxDimensions> extents{};  // in items; a 0 makes the box empty
    std::array<std::int64_t, kBoxDimensions> destination_strides{};  // in bytes
    std::array<std::int64_t, kBoxDimensions> source_strides{};       // in bytes; 0 repeats the source

    std::uint64_t bytes() const noexcept;  // that the box writes
};

struct BoxDimension {
    std::uint64_t extent = 0;
    std::int64_t destination_stride = 0;
    std::int64_t source_stride = 0;
};

// Bytes around the first item of one side: [low, high), low <= 0. Both 0 when there are no items.
struct ByteSpan {
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low); }
};

// What a grid touches. Throws Error{invalid_argument} when that is more than an address can say.
ByteSpan byte_span(std::uint64_t item_bytes, std::span<const std::uint64_t> extents,
                   std::span<const std::int64_t> strides);
ByteSpan destination_span(const Box& box);
ByteSpan source_span(const Box& box);

// Hands to `take` boxes that together do what `item` over these dimensions says, in as few dimensions as it takes:
// dimensions that lie in a row are merged, into the item too, and none is left of extent 1. The destination strides of
// the boxes are positive and fall. More than kBoxDimensions after merging become several boxes; an extent of 0 becomes
// none. The dimensions of `item` itself are not looked at. Throws Error{invalid_argument}: item and word sizes that do
// not fit, destination items that overlap, addresses that overflow.
void split_box(const Box& item, std::span<const BoxDimension> dimensions, const std::function<void(const Box&)>& take);
// The same for the dimensions of the box itself: at most one box.
void simplify_box(const Box& box, const std::function<void(const Box&)>& take);

}  // namespace penstock
