// Random boxes, and what they mean by plain loops: the reference for everything that moves boxes.
//
// The reference moves items byte by byte, in the order of their dimensions. It uses no merging, vectors or words.
// Places are offsets in two byte arrays, so that the same boxes work with any memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "penstock/box.hpp"

namespace penstock::conformance {

// Returns the offsets of the items of one side. The last dimension varies fastest.
inline std::vector<std::int64_t> item_offsets(const Box& box, const std::array<std::int64_t, kBoxDimensions>& strides) {
    std::vector<std::int64_t> offsets{0};
    for (std::uint32_t d = 0; d < box.dimensions; ++d) {
        std::vector<std::int64_t> longer;
        for (const std::int64_t offset : offsets) {
            for (std::uint64_t i = 0; i < box.extents[d]; ++i) {
                longer.push_back(offset + static_cast<std::int64_t>(i) * strides[d]);
            }
        }
        offsets = std::move(longer);
    }
    return offsets;
}

// A box whose pointers stand for offsets in two byte arrays.
struct ReferenceBox {
    Box box;
    std::uint64_t to = 0, from = 0;
    Box at(unsigned char* destination, const unsigned char* source) const {
        Box placed = box;
        placed.destination = destination + to;
        placed.source = source + from;
        return placed;
    }
    void move(std::vector<unsigned char>& destination, const std::vector<unsigned char>& source) const {
        const auto into = item_offsets(box, box.destination_strides), out = item_offsets(box, box.source_strides);
        const std::uint64_t word = std::max(1u, box.swap_bytes);
        std::vector<unsigned char> item(box.item_bytes);
        for (std::size_t i = 0; i < into.size(); ++i) {
            for (std::uint64_t b = 0; b < box.item_bytes; ++b) {
                const std::uint64_t mirrored = b / word * word + (word - 1 - b % word);
                item[b] = source.at(from + static_cast<std::uint64_t>(out[i]) + mirrored);
            }
            std::copy(item.begin(), item.end(),
                      destination.begin() + static_cast<std::ptrdiff_t>(to) + into[i]);
        }
    }
};

struct StridesExtent {
    std::uint64_t bytes = 0;
    std::uint64_t first = 0;  // offset of the first item
};

// Chooses strides that keep items apart: a random order of dimensions, gaps and reversals. Returns what they span.
inline StridesExtent random_strides(std::mt19937_64& random, const Box& box, std::uint64_t step,
                                    std::array<std::int64_t, kBoxDimensions>& strides) {
    std::array<std::uint32_t, kBoxDimensions> order{};
    std::iota(order.begin(), order.begin() + box.dimensions, 0u);
    if (random() % 2 == 0) {
        std::reverse(order.begin(), order.begin() + box.dimensions);  // C order
    } else {
        std::shuffle(order.begin(), order.begin() + box.dimensions, random);
    }
    StridesExtent span{.bytes = box.item_bytes};
    for (std::uint32_t i = 0; i < box.dimensions; ++i) {
        const std::uint64_t extent = std::max<std::uint64_t>(1, box.extents[order[i]]);
        const std::uint64_t stride = span.bytes + (random() % 3 == 0 ? random() % 5 * step : 0);
        const bool reversed = random() % 4 == 0;
        strides[order[i]] = reversed ? -static_cast<std::int64_t>(stride) : static_cast<std::int64_t>(stride);
        if (reversed) span.first += stride * (extent - 1);
        span.bytes += stride * (extent - 1);
    }
    return span;
}

struct BoxTrial {
    std::uint64_t largest_item, largest_extent;
    std::uint32_t most_dimensions;
    std::uint64_t alignment;  // of items, gaps and offsets
    std::uint32_t swap;
    int boxes;
    friend std::ostream& operator<<(std::ostream& out, const BoxTrial& trial) {
        return out << "items of " << trial.largest_item << " aligned to " << trial.alignment << " swapping "
                   << trial.swap << ", extents to " << trial.largest_extent << " in " << trial.most_dimensions;
    }
};

// Returns boxes that follow each other on both sides, in order on one side and shuffled on the other, with few or no
// bytes in between.
inline std::vector<ReferenceBox> random_boxes(std::mt19937_64& random, const BoxTrial& trial, std::uint64_t& to_bytes,
                                              std::uint64_t& from_bytes) {
    std::vector<ReferenceBox> boxes(static_cast<std::size_t>(trial.boxes));
    to_bytes = from_bytes = random() % 32 / trial.alignment * trial.alignment;
    for (ReferenceBox& one : boxes) {
        const std::uint64_t unit = std::max<std::uint64_t>(trial.alignment, trial.swap);
        one.box.item_bytes = unit * (1 + random() % (trial.largest_item / unit));
        one.box.swap_bytes = trial.swap;
        one.box.dimensions = static_cast<std::uint32_t>(random() % (trial.most_dimensions + 1));
        for (std::uint32_t d = 0; d < one.box.dimensions; ++d) {
            one.box.extents[d] = random() % 40 == 0 ? 0 : 1 + random() % trial.largest_extent;
        }
        const std::uint64_t gap = random() % 3 * trial.alignment;
        const StridesExtent to = random_strides(random, one.box, trial.alignment, one.box.destination_strides);
        to_bytes += to.bytes + gap;
        one.to = to_bytes - gap - destination_span(one.box).bytes() + to.first;
        if (destination_span(one.box).bytes() == 0) one.to = to_bytes;
        const std::uint64_t from_start = from_bytes + gap;
        const StridesExtent from = random_strides(random, one.box, trial.alignment, one.box.source_strides);
        from_bytes = from_start + from.bytes;
        one.from = from_start + from.first;
    }
    std::shuffle(boxes.begin(), boxes.end(), random);
    to_bytes += 64;
    from_bytes += 64;
    return boxes;
}

}  // namespace penstock::conformance
