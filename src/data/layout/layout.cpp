// See layout.hpp.
#include "data/layout/layout.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::data {
namespace {

constexpr std::int64_t kLastNumber = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostSpanned = 4096;  // chunks between the first and the last element of a box

using Numbers = std::array<std::int64_t, kMostDimensions>;

// The part of a box that one chunk holds: in the chunk, in the box, and the strides of both, in elements.
struct ChunkPart {
    std::size_t dimensions = 0;
    Numbers count{};
    std::int64_t in_chunk = 0;  // of the first element, from the chunk's first
    Numbers in_box{};           // of the first element
    Numbers chunk_stride{}, box_stride{};
};

void refuse(bool wrong, const char* cause) {
    if (wrong) throw Error(ErrorCode::invalid_argument, "describe a dataset", cause);
}

bool product_fits(const std::vector<std::int64_t>& numbers, std::int64_t factor) {
    std::int64_t product = factor;
    return std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t number) {
        return !__builtin_mul_overflow(product, std::max<std::int64_t>(1, number), &product);
    });
}

// Steps to the next of `counts` positions, the last dimension first. False: that was the last.
bool next(Numbers& at, const Numbers& counts, std::size_t dimensions) noexcept {
    for (std::size_t axis = dimensions; axis-- > 0;) {
        if (++at[axis] < counts[axis]) return true;
        at[axis] = 0;
    }
    return false;
}

// Inner dimensions that are one run on both sides: the elements of a run, and the dimensions outside of it.
std::pair<std::int64_t, std::size_t> inner_run(const ChunkPart& part) noexcept {
    std::int64_t elements = 1;
    std::size_t outer = part.dimensions;
    while (outer > 0 && (part.count[outer - 1] == 1 ||
                         (part.chunk_stride[outer - 1] == elements && part.box_stride[outer - 1] == elements))) {
        elements *= part.count[--outer];
    }
    return {elements, outer};
}

template <typename Found>
bool add_runs(const ChunkPart& part, std::uint64_t offset, std::uint64_t item_bytes, Found& found) {
    const auto [elements, outer] = inner_run(part);
    Numbers at{};
    do {
        std::int64_t in_chunk = part.in_chunk, in_box = 0;
        for (std::size_t axis = 0; axis < part.dimensions; ++axis) {
            in_chunk += at[axis] * part.chunk_stride[axis];
            in_box += (part.in_box[axis] + at[axis]) * part.box_stride[axis];
        }
        const auto bytes_of = [&](std::int64_t count) { return static_cast<std::uint64_t>(count) * item_bytes; };
        if (!found.add({offset + bytes_of(in_chunk), bytes_of(in_box), bytes_of(elements)})) return false;
    } while (next(at, part.count, outer));
    return true;
}

// Whether the run continues the last one, which then holds it too.
bool joins(FileRun& last, const FileRun& run) noexcept {
    const bool in_file = last.file_offset + last.bytes == run.file_offset;
    if (!in_file || last.memory_offset + last.bytes != run.memory_offset) return false;
    last.bytes += run.bytes;
    return true;
}

}  // namespace

bool Runs::add(const FileRun& run) noexcept {
    if (count_ != 0 && joins(runs_[count_ - 1], run)) return true;
    if (count_ == kMostRuns) return false;
    runs_[count_++] = run;
    return true;
}

bool RunList::add(const FileRun& run) {
    if (!runs_.empty() && joins(runs_.back(), run)) return true;
    if (runs_.size() == kMostListedRuns) return false;
    runs_.push_back(run);
    return true;
}

Layout::Layout(Stored stored) : stored_(std::move(stored)) {
    const auto& [shape, chunk_shape, item_bytes, edge_cut, cells, offsets] = stored_;
    refuse(shape.size() > kMostDimensions, "it has more than 16 dimensions");
    refuse(shape.size() != chunk_shape.size(), "shape and chunk_shape have different numbers of dimensions");
    refuse(item_bytes == 0 || item_bytes > static_cast<std::uint64_t>(kLastNumber), "its elements have no bytes");
    refuse(std::any_of(shape.begin(), shape.end(), [](std::int64_t n) { return n < 0; }), "its shape is negative");
    refuse(std::any_of(chunk_shape.begin(), chunk_shape.end(), [](std::int64_t n) { return n < 1; }),
           "its chunks have no elements");
    const auto item = static_cast<std::int64_t>(item_bytes);
    refuse(!product_fits(shape, item) || !product_fits(chunk_shape, item), "it has more bytes than a file can");
    refuse(cells.size() != offsets.size(), "cells and offsets are of different lengths");
    std::int64_t every = 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        grid_.push_back(shape[axis] / chunk_shape[axis] + (shape[axis] % chunk_shape[axis] != 0));
        every *= grid_.back();
    }
    refuse(std::adjacent_find(cells.begin(), cells.end(), std::greater_equal<>()) != cells.end(),
           "the numbers of its chunks do not ascend");
    refuse(!cells.empty() && (cells.front() < 0 || cells.back() >= every), "a chunk lies outside of it");
    std::int64_t chunk_bytes = item;
    for (const std::int64_t extent : chunk_shape) chunk_bytes *= extent;
    const auto last = static_cast<std::uint64_t>(kLastNumber - chunk_bytes);
    refuse(std::any_of(offsets.begin(), offsets.end(), [&](std::uint64_t offset) { return offset > last; }),
           "a chunk lies behind the last byte that a file can have");
    dense_ = static_cast<std::int64_t>(cells.size()) == every;
    const auto is_divided = [](std::int64_t chunks) { return chunks != 1; };
    if (std::any_of(grid_.begin() + !grid_.empty(), grid_.end(), is_divided)) return;
    row_stride_ = item_bytes;
    for (std::size_t axis = 1; axis < shape.size(); ++axis) {
        row_stride_ *= static_cast<std::uint64_t>(edge_cut ? shape[axis] : chunk_shape[axis]);
    }
}

bool Layout::find(std::int64_t cell, std::uint64_t& offset) const noexcept {
    if (dense_) {
        offset = stored_.offsets[static_cast<std::size_t>(cell)];
        return true;
    }
    const auto place = std::lower_bound(stored_.cells.begin(), stored_.cells.end(), cell);
    if (place == stored_.cells.end() || *place != cell) return false;
    offset = stored_.offsets[static_cast<std::size_t>(place - stored_.cells.begin())];
    return true;
}

bool Layout::row_begin(std::int64_t row, std::uint64_t& begin) const noexcept {
    const std::int64_t chunk = stored_.chunk_shape[0];
    if (!find(row / chunk, begin)) return false;
    begin += static_cast<std::uint64_t>(row % chunk) * row_stride_;
    return true;
}

template <typename Found>
bool Layout::add_chunk(const ElementBox& box, std::span<const std::int64_t> at, Found& found) const {
    ChunkPart part;
    part.dimensions = dimensions();
    std::int64_t cell = 0, chunk_stride = 1, box_stride = 1;
    for (std::size_t axis = part.dimensions; axis-- > 0;) {
        const std::int64_t chunk = stored_.chunk_shape[axis], origin = at[axis] * chunk, step = box.step[axis];
        const std::int64_t extent = stored_.edge_cut ? std::min(chunk, stored_.shape[axis] - origin) : chunk;
        const std::int64_t behind = origin - box.start[axis];  // the chunk's first element, from the box's first
        const std::int64_t first = behind <= 0 ? 0 : (behind + step - 1) / step;
        const std::int64_t end = std::min(box.count[axis], (behind + extent - 1) / step + 1);
        if (first >= end) return true;  // the box steps over it
        part.count[axis] = end - first;
        part.in_chunk += (first * step - behind) * chunk_stride;
        part.in_box[axis] = first;
        part.chunk_stride[axis] = chunk_stride * step;
        part.box_stride[axis] = box_stride;
        chunk_stride *= extent;
        box_stride *= box.count[axis];
    }
    for (std::size_t axis = 0; axis < part.dimensions; ++axis) cell = cell * grid_[axis] + at[axis];
    std::uint64_t offset = 0;
    return find(cell, offset) && add_runs(part, offset, stored_.item_bytes, found);
}

template <typename Found>
bool Layout::add_box(const ElementBox& box, Found& found) const {
    Numbers first{}, counts{}, at{}, cell{};
    std::int64_t spanned = 1;
    for (std::size_t axis = 0; axis < dimensions(); ++axis) {
        const std::int64_t chunk = stored_.chunk_shape[axis];
        first[axis] = box.start[axis] / chunk;
        const std::int64_t last = box.start[axis] + (box.count[axis] - 1) * box.step[axis];
        counts[axis] = last / chunk - first[axis] + 1;
        if (counts[axis] > kMostSpanned / spanned) return false;
        spanned *= counts[axis];
    }
    do {
        for (std::size_t axis = 0; axis < dimensions(); ++axis) cell[axis] = first[axis] + at[axis];
        if (!add_chunk(box, {cell.data(), dimensions()}, found)) return false;
    } while (next(at, counts, dimensions()));
    return true;
}

bool Layout::runs(const ElementBox& box, Runs& found) const noexcept { return add_box(box, found); }
bool Layout::runs(const ElementBox& box, RunList& found) const { return add_box(box, found); }

}  // namespace penstock::data
