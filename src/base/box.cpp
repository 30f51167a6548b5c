// See box.hpp. Strides are checked before any arithmetic on them, so that nothing here overflows.
#include "penstock/box.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "penstock/error.hpp"

namespace penstock {
namespace {

[[noreturn]] void refuse(const std::string& cause, const std::string& advice = {}) {
    throw Error(ErrorCode::invalid_argument, "lay out a box", cause, advice);
}

// The innermost dimension comes first.
struct BoxLayout {
    Box box;
    std::array<BoxDimension, kArrayDimensions> all{};
    std::size_t count = 0;
    std::span<BoxDimension> dimensions() { return {all.data(), count}; }
    void drop(std::size_t index) {
        std::copy(all.data() + index + 1, all.data() + count, all.data() + index);
        --count;
    }
};

// Moves modulo 2^64, like addresses. Requires: the result was checked before.
template <class Pointer>
void move_by(Pointer*& pointer, std::uint64_t steps, std::int64_t stride) {
    const std::uint64_t distance = steps * static_cast<std::uint64_t>(stride);
    pointer = reinterpret_cast<Pointer*>(reinterpret_cast<std::uintptr_t>(pointer) + distance);
}

void move_by(Box& box, std::uint64_t steps, const BoxDimension& dimension) {
    move_by(box.destination, steps, dimension.destination_stride);
    move_by(box.source, steps, dimension.source_stride);
}

void check_item(const Box& item) {
    if (item.item_bytes == 0) refuse("an item of 0 bytes", "give the size of an item");
    const std::uint32_t word = item.swap_bytes;
    if (word != 0 && word != 2 && word != 4 && word != 8 && word != 16) {
        refuse("words of " + std::to_string(word) + " bytes to swap", "use 0, 2, 4, 8 or 16");
    }
    if (word != 0 && item.item_bytes % word != 0) {
        refuse("an item of " + std::to_string(item.item_bytes) + " bytes is no whole number of words of " +
                   std::to_string(word),
               "swap the parts of compound items one by one");
    }
}

void check_numbers(const Box& item, std::span<const BoxDimension> dimensions) {
    if (dimensions.size() > kArrayDimensions) {
        refuse(std::to_string(dimensions.size()) + " dimensions; the limit is " + std::to_string(kArrayDimensions));
    }
    std::array<std::uint64_t, kArrayDimensions> extents;
    std::array<std::int64_t, kArrayDimensions> to, from;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
        extents[i] = dimensions[i].extent;
        to[i] = dimensions[i].destination_stride;
        from[i] = dimensions[i].source_stride;
    }
    const std::span<const std::uint64_t> all(extents.data(), dimensions.size());
    static_cast<void>(byte_span(item.item_bytes, all, {to.data(), dimensions.size()}));
    static_cast<void>(byte_span(item.item_bytes, all, {from.data(), dimensions.size()}));
}

// Reverses a dimension so that the destination ascends.
void turn(Box& box, BoxDimension& dimension) {
    move_by(box, dimension.extent - 1, dimension);
    dimension.destination_stride = -dimension.destination_stride;
    dimension.source_stride = -dimension.source_stride;
}

// Requires: dimensions are sorted by destination stride. Each must step over all bytes of the inner ones.
void check_apart(BoxLayout& layout) {
    std::uint64_t inner = layout.box.item_bytes;
    for (const BoxDimension& dimension : layout.dimensions()) {
        const auto stride = static_cast<std::uint64_t>(dimension.destination_stride);
        if (stride < inner) {
            refuse("destination items overlap: a stride of " + std::to_string(stride) + " bytes steps over " +
                       std::to_string(inner),
                   "destination strides must be larger than what they step over");
        }
        inner += stride * (dimension.extent - 1);
    }
}

bool continues(const BoxDimension& inner, const BoxDimension& outer) {
    const auto end = [&](std::int64_t stride) { return static_cast<std::int64_t>(
        inner.extent * static_cast<std::uint64_t>(stride)); };
    return outer.destination_stride == end(inner.destination_stride) && outer.source_stride == end(inner.source_stride);
}

void merge(BoxLayout& layout) {
    std::size_t kept = 0;
    for (const BoxDimension& dimension : layout.dimensions()) {
        if (kept > 0 && continues(layout.all[kept - 1], dimension)) {
            layout.all[kept - 1].extent *= dimension.extent;
        } else {
            layout.all[kept++] = dimension;
        }
    }
    layout.count = kept;
    const auto item = static_cast<std::int64_t>(layout.box.item_bytes);
    if (kept == 0 || layout.all[0].destination_stride != item || layout.all[0].source_stride != item) return;
    layout.box.item_bytes *= layout.all[0].extent;
    layout.drop(0);
}

bool lay_out(BoxLayout& layout, const Box& item, std::span<const BoxDimension> dimensions) {
    check_item(item);
    check_numbers(item, dimensions);
    layout.box = item;
    const auto empty = [](const BoxDimension& dimension) { return dimension.extent == 0; };
    if (std::any_of(dimensions.begin(), dimensions.end(), empty)) return false;
    if (item.destination == nullptr) refuse("the destination is null");
    for (const BoxDimension& dimension : dimensions) {
        if (dimension.extent == 1) continue;
        BoxDimension& added = layout.all[layout.count++];
        added = dimension;
        if (added.destination_stride < 0) turn(layout.box, added);
    }
    std::sort(layout.all.data(), layout.all.data() + layout.count,
              [](const auto& a, const auto& b) { return a.destination_stride < b.destination_stride; });
    check_apart(layout);
    merge(layout);
    return true;
}

void hand_over(Box box, std::span<const BoxDimension> dimensions, const std::function<void(const Box&)>& take) {
    box.dimensions = static_cast<std::uint32_t>(dimensions.size());
    box.extents = {};
    box.destination_strides = box.source_strides = {};
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
        const BoxDimension& dimension = dimensions[dimensions.size() - 1 - i];
        box.extents[i] = dimension.extent;
        box.destination_strides[i] = dimension.destination_stride;
        box.source_strides[i] = dimension.source_stride;
    }
    take(box);
}

// Makes one box for each place in the dimensions with the fewest items, so that the boxes are large and few.
void hand_over_each(BoxLayout& layout, const std::function<void(const Box&)>& take) {
    if (layout.count <= kBoxDimensions) return hand_over(layout.box, layout.dimensions(), take);
    const auto all = layout.dimensions();
    const auto smallest =
        std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.extent < b.extent; });
    const BoxDimension outer = *smallest;
    layout.drop(static_cast<std::size_t>(smallest - all.begin()));
    for (std::uint64_t i = 0; i < outer.extent; ++i) {
        BoxLayout one = layout;
        hand_over_each(one, take);
        move_by(layout.box, 1, outer);
    }
}

}  // namespace

std::uint64_t Box::bytes() const noexcept {
    std::uint64_t total = item_bytes;
    for (std::uint32_t i = 0; i < dimensions; ++i) total *= extents[i];
    return total;
}

ByteSpan byte_span(std::uint64_t item_bytes, std::span<const std::uint64_t> extents,
                   std::span<const std::int64_t> strides) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    for (const std::uint64_t extent : extents) {
        if (extent == 0) return {};
    }
    if (item_bytes > kMost) refuse("items of " + std::to_string(item_bytes) + " bytes leave the address space");
    ByteSpan span{0, static_cast<std::int64_t>(item_bytes)};
    for (std::size_t i = 0; i < extents.size(); ++i) {
        std::int64_t reach = 0;
        bool overflow = extents[i] > kMost ||
                        __builtin_mul_overflow(static_cast<std::int64_t>(extents[i] - 1), strides[i], &reach);
        overflow |= reach == std::numeric_limits<std::int64_t>::min();  // has no positive counterpart
        std::int64_t& end = reach < 0 ? span.low : span.high;
        overflow = overflow || __builtin_add_overflow(end, reach, &end);
        if (overflow) {
            refuse(std::to_string(extents[i]) + " items with a stride of " + std::to_string(strides[i]) +
                   " bytes leave the address space");
        }
    }
    return span;
}

ByteSpan destination_span(const Box& box) {
    return byte_span(box.item_bytes, {box.extents.data(), box.dimensions},
                     {box.destination_strides.data(), box.dimensions});
}

ByteSpan source_span(const Box& box) {
    return byte_span(box.item_bytes, {box.extents.data(), box.dimensions}, {box.source_strides.data(), box.dimensions});
}

void split_box(const Box& item, std::span<const BoxDimension> dimensions, const std::function<void(const Box&)>& take) {
    BoxLayout layout;
    if (lay_out(layout, item, dimensions)) hand_over_each(layout, take);
}

void simplify_box(const Box& box, const std::function<void(const Box&)>& take) {
    if (box.dimensions > kBoxDimensions) {
        refuse("a box of " + std::to_string(box.dimensions) + " dimensions; the limit is " +
                   std::to_string(kBoxDimensions),
               "use split_box for more");
    }
    std::array<BoxDimension, kBoxDimensions> dimensions;
    for (std::uint32_t i = 0; i < box.dimensions; ++i) {
        dimensions[i] = {box.extents[i], box.destination_strides[i], box.source_strides[i]};
    }
    split_box(box, {dimensions.data(), box.dimensions}, take);
}

}  // namespace penstock
