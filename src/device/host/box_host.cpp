// See box_host.hpp.
#include "device/host/box_host.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "penstock/error.hpp"

namespace penstock::device {
namespace {

// bytes of a row of repeated items, at most; a row has at least one item
constexpr std::uint64_t kPatternBytes = 4 * kKiB;

// A row: the innermost dimension of a box.
struct Row {
    std::byte* to;
    const std::byte* from;
    std::uint64_t items;
    std::int64_t to_stride, from_stride;
    std::uint64_t item_bytes;
};
using MoveRow = void (*)(const Row&);

template <std::size_t kBytes>
void copy_items(const Row& row) {
    std::byte* to = row.to;
    const std::byte* from = row.from;
    for (std::uint64_t i = 0; i < row.items; ++i, to += row.to_stride, from += row.from_stride) {
        std::memcpy(to, from, kBytes);
    }
}

void copy_large_items(const Row& row) {
    std::byte* to = row.to;
    const std::byte* from = row.from;
    for (std::uint64_t i = 0; i < row.items; ++i, to += row.to_stride, from += row.from_stride) {
        std::memcpy(to, from, row.item_bytes);
    }
}

std::uint16_t reversed(std::uint16_t word) { return __builtin_bswap16(word); }
std::uint32_t reversed(std::uint32_t word) { return __builtin_bswap32(word); }
std::uint64_t reversed(std::uint64_t word) { return __builtin_bswap64(word); }
struct Wide {
    std::uint64_t low, high;
};
Wide reversed(Wide word) { return {reversed(word.high), reversed(word.low)}; }

// Reads each word whole before writing it, because source and destination may be the same memory.
template <class Word>
void swap_items(const Row& row) {
    for (std::uint64_t i = 0; i < row.items; ++i) {
        std::byte* to = row.to + static_cast<std::int64_t>(i) * row.to_stride;
        const std::byte* from = row.from + static_cast<std::int64_t>(i) * row.from_stride;
        for (std::uint64_t at = 0; at < row.item_bytes; at += sizeof(Word)) {
            Word word;
            std::memcpy(&word, from + at, sizeof word);
            word = reversed(word);
            std::memcpy(to + at, &word, sizeof word);
        }
    }
}

MoveRow mover(const Box& box) noexcept {
    switch (box.swap_bytes) {
        case 2: return &swap_items<std::uint16_t>;
        case 4: return &swap_items<std::uint32_t>;
        case 8: return &swap_items<std::uint64_t>;
        case 16: return &swap_items<Wide>;
        default: break;
    }
    switch (box.item_bytes) {
        case 1: return &copy_items<1>;
        case 2: return &copy_items<2>;
        case 4: return &copy_items<4>;
        case 8: return &copy_items<8>;
        case 16: return &copy_items<16>;
        default: return &copy_large_items;
    }
}

void move_dimension(const Box& box, std::uint32_t dimension, Row row, MoveRow move) {
    if (dimension + 1 >= box.dimensions) return move(row);
    const std::uint64_t extent = box.extents[dimension];
    const Row first = row;
    for (std::uint64_t i = 0; i < extent; ++i) {
        const auto steps = static_cast<std::int64_t>(i);
        row.to = first.to + steps * box.destination_strides[dimension];
        row.from = first.from + steps * box.source_strides[dimension];
        move_dimension(box, dimension + 1, row, move);
    }
}

[[noreturn]] void refuse(const std::string& cause, const std::string& advice = {}) {
    throw Error(ErrorCode::invalid_argument, "fill boxes", cause, advice);
}

// Adds a box that repeats one item `items` times in each row. Its innermost dimension is that row.
void add_rows(BoxFill& fill, Box box, std::uint64_t items, std::uint64_t in_pattern) {
    const std::uint32_t last = box.dimensions - 1;
    const std::uint64_t item_bytes = box.item_bytes, whole = items / in_pattern, rest = items % in_pattern;
    if (whole > 0) {
        Box rows = box;
        rows.item_bytes = in_pattern * item_bytes;
        rows.extents[last] = whole;
        rows.destination_strides[last] = static_cast<std::int64_t>(rows.item_bytes);
        fill.boxes.push_back(rows);
    }
    if (rest > 0) {
        box.destination = static_cast<std::byte*>(box.destination) + whole * in_pattern * item_bytes;
        box.item_bytes = rest * item_bytes;
        box.dimensions = last;
        fill.boxes.push_back(box);
    }
}

}  // namespace

void copy_box_on_host(const Box& box) noexcept {
    Row row{static_cast<std::byte*>(box.destination), static_cast<const std::byte*>(box.source), 1, 0, 0,
            box.item_bytes};
    if (box.dimensions > 0) {
        const std::uint32_t last = box.dimensions - 1;
        row.items = box.extents[last];
        row.to_stride = box.destination_strides[last];
        row.from_stride = box.source_strides[last];
    }
    move_dimension(box, 0, row, mover(box));
}

BoxFill plan_fill(std::span<const Box> boxes, std::span<const std::byte> item) {
    if (item.empty() || item.size() > kFillItemBytes) {
        refuse("an item of " + std::to_string(item.size()) + " bytes",
               "give 1 to " + std::to_string(kFillItemBytes) + " bytes; copy one box to the others for more");
    }
    // If the item allows, the pattern is a whole number of vectors of 16 bytes, so that rows stay aligned.
    std::uint64_t in_pattern = std::max<std::uint64_t>(1, kPatternBytes / item.size());
    if (in_pattern > 16) in_pattern = align_down(in_pattern, 16);
    BoxFill fill;
    fill.pattern.reserve(in_pattern * item.size());
    for (std::uint64_t i = 0; i < in_pattern; ++i) fill.pattern.insert(fill.pattern.end(), item.begin(), item.end());
    for (Box box : boxes) {
        if (box.item_bytes != item.size()) {
            refuse("a box of items of " + std::to_string(box.item_bytes) + " bytes is filled with one of " +
                   std::to_string(item.size()));
        }
        if (box.swap_bytes != 0) refuse("a fill swaps no words", "give the item in the order of bytes it is to have");
        box.source = nullptr;
        box.source_strides = {};
        simplify_box(box, [&](const Box& simple) {
            const std::uint32_t last = simple.dimensions - 1;
            const bool contiguous = simple.dimensions > 0 &&
                                    simple.destination_strides[last] == static_cast<std::int64_t>(simple.item_bytes);
            if (contiguous) {
                add_rows(fill, simple, simple.extents[last], in_pattern);
            } else {
                fill.boxes.push_back(simple);
            }
        });
    }
    return fill;
}

}  // namespace penstock::device
