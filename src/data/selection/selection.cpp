// See selection.hpp.
#include "data/selection/selection.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "penstock/error.hpp"

namespace penstock::data {
namespace {

constexpr std::int64_t kLastByte = std::numeric_limits<std::int64_t>::max();

void refuse(bool wrong, const char* operation, const char* cause) {
    if (wrong) throw Error(ErrorCode::invalid_argument, operation, cause);
}

bool bytes_fit(const std::vector<std::int64_t>& numbers, std::int64_t factor) {
    std::int64_t product = factor;
    return std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t number) {
        return !__builtin_mul_overflow(product, std::max<std::int64_t>(1, number), &product);
    });
}

// Dimensions of more than one element, those that are farthest apart in the chunk first.
std::vector<BoxDimension> far_to_near(const SelectedPart& part) {
    std::vector<BoxDimension> sorted;
    std::copy_if(part.grid.begin(), part.grid.begin() + static_cast<std::ptrdiff_t>(part.dimensions),
                 std::back_inserter(sorted), [](const BoxDimension& one) { return one.extent != 1; });
    std::stable_sort(sorted.begin(), sorted.end(), [](const BoxDimension& one, const BoxDimension& other) {
        return one.source_stride > other.source_stride;
    });
    return sorted;
}

// Cuts one part: dimension by dimension from the outside, until what is inside fits a span.
class SpanCutter {
  public:
    SpanCutter(std::vector<BoxDimension> grid, std::uint64_t item_bytes, const CutLimits& limits,
               const std::function<void(const ChunkSpan&)>& take)
        : grid_(std::move(grid)), limits_(limits), take_(take), bytes_(grid_.size() + 1), tight_(grid_.size() + 1) {
        bytes_.back() = item_bytes;
        tight_.back() = true;
        straight_from_ = grid_.size();
        for (std::size_t axis = grid_.size(); axis-- > 0;) {
            const auto stride = static_cast<std::uint64_t>(grid_[axis].source_stride);
            bytes_[axis] = (grid_[axis].extent - 1) * stride + bytes_[axis + 1];
            tight_[axis] = tight_[axis + 1] && stride - bytes_[axis + 1] <= limits_.gap_bytes;
            const bool adjoins =
                stride == bytes_[axis + 1] && grid_[axis].destination_stride == grid_[axis].source_stride;
            if (straight_from_ == axis + 1 && adjoins) straight_from_ = axis;
        }
        is_long_ = limits_.allow_straight && bytes_[straight_from_] >= limits_.straight_bytes;
    }

    void cut(std::size_t axis, std::uint64_t chunk_offset, std::int64_t memory_offset) {
        if (limits_.allow_straight && axis == straight_from_) {
            take_({chunk_offset, bytes_[axis], memory_offset, true, {}});
            return;
        }
        if (tight_[axis] && !is_long_ && bytes_[axis] <= limits_.scratch_bytes) {
            take_({chunk_offset, bytes_[axis], memory_offset, false, std::span(grid_).subspan(axis)});
            return;
        }
        const BoxDimension whole = grid_[axis];
        const std::uint64_t most = together(axis);
        for (std::uint64_t at = 0; at < whole.extent; at += most) {
            const std::uint64_t from = chunk_offset + at * static_cast<std::uint64_t>(whole.source_stride);
            const std::int64_t to = memory_offset + static_cast<std::int64_t>(at) * whole.destination_stride;
            if (most == 1) {
                cut(axis + 1, from, to);
                continue;
            }
            grid_[axis].extent = std::min(most, whole.extent - at);
            const std::uint64_t steps = (grid_[axis].extent - 1) * static_cast<std::uint64_t>(whole.source_stride);
            take_({from, steps + bytes_[axis + 1], to, false, std::span(grid_).subspan(axis)});
        }
        grid_[axis] = whole;
    }

  private:
    // Steps of this dimension that make one span.
    std::uint64_t together(std::size_t axis) const {
        if (is_long_ || !tight_[axis] || bytes_[axis + 1] > limits_.scratch_bytes) return 1;
        const std::uint64_t room = limits_.scratch_bytes - bytes_[axis + 1];
        return room / static_cast<std::uint64_t>(grid_[axis].source_stride) + 1;
    }

    std::vector<BoxDimension> grid_;
    const CutLimits& limits_;
    const std::function<void(const ChunkSpan&)>& take_;
    std::vector<std::uint64_t> bytes_;  // from the first to the last byte of this dimension and those inside it
    std::vector<bool> tight_;           // no gap in them is longer than the limit
    std::size_t straight_from_ = 0;     // from this dimension on, elements lie alike in the chunk and in memory
    bool is_long_ = false;
};

}  // namespace

std::vector<std::int64_t> c_strides(std::span<const std::int64_t> shape, std::uint64_t item_bytes) {
    std::vector<std::int64_t> strides(shape.size());
    std::uint64_t stride = item_bytes;  // of shapes that no file has it may wrap: check_grid() refuses them
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        strides[axis] = static_cast<std::int64_t>(stride);
        stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(1, shape[axis]));
    }
    return strides;
}

void check_grid(const StoredGrid& grid) {
    const char* operation = "describe a dataset";
    const auto& [shape, chunk, strides, item_bytes] = grid;
    refuse(shape.size() > kMostDimensions, operation, "it has more than 16 dimensions");
    refuse(chunk.size() != shape.size() || strides.size() != shape.size(), operation,
           "shape, chunks and strides have different numbers of dimensions");
    refuse(item_bytes == 0 || item_bytes > static_cast<std::uint64_t>(kLastByte), operation,
           "its elements have no bytes");
    refuse(std::any_of(shape.begin(), shape.end(), [](std::int64_t n) { return n < 0; }), operation,
           "its shape is negative");
    refuse(std::any_of(chunk.begin(), chunk.end(), [](std::int64_t n) { return n < 1; }), operation,
           "its chunks have no elements");
    const auto item = static_cast<std::int64_t>(item_bytes);
    refuse(!bytes_fit(shape, item) || !bytes_fit(chunk, item), operation, "it has more bytes than a file can");
    std::vector<std::size_t> near(shape.size());
    std::iota(near.begin(), near.end(), std::size_t{0});
    std::stable_sort(near.begin(), near.end(),
                     [&grid](auto one, auto other) { return grid.strides[one] < grid.strides[other]; });
    std::int64_t inside = item;
    for (const std::size_t axis : near) {
        if (chunk[axis] == 1) continue;
        refuse(strides[axis] < inside, operation, "elements of its chunks overlap");
        std::int64_t steps = 0;
        const bool too_far = __builtin_mul_overflow(strides[axis], chunk[axis] - 1, &steps) ||
                             __builtin_add_overflow(inside, steps, &inside);
        refuse(too_far, operation, "it has more bytes than a file can");
    }
}

std::uint64_t chunk_bytes(const StoredGrid& grid) {
    auto bytes = static_cast<std::int64_t>(grid.item_bytes);
    for (std::size_t axis = 0; axis < grid.shape.size(); ++axis) {
        bytes += (grid.chunk_shape[axis] - 1) * grid.strides[axis];
    }
    return static_cast<std::uint64_t>(bytes);
}

void check_box(const StoredGrid& grid, const ElementBox& box) {
    for (std::size_t axis = 0; axis < grid.shape.size(); ++axis) {
        const std::int64_t extent = grid.shape[axis], start = box.start[axis], count = box.count[axis];
        const bool inside = start >= 0 && count >= 0 && box.step[axis] >= 1 && start <= extent &&
                            (count == 0 || (start < extent && count - 1 <= (extent - 1 - start) / box.step[axis]));
        if (inside) continue;
        throw Error(ErrorCode::invalid_argument, "select elements",
                    "dimension " + std::to_string(axis) + ": start " + std::to_string(start) + ", count " +
                        std::to_string(count) + ", step " + std::to_string(box.step[axis]) + " of " +
                        std::to_string(extent) + " elements",
                    "select elements that the dataset has");
    }
}

void for_each_part(const StoredGrid& grid, const Selection& selection,
                   const std::function<void(const SelectedPart&)>& take) {
    const std::size_t dimensions = grid.shape.size();
    const ElementBox& box = selection.box;
    const Strides& memory_strides = selection.memory_strides;
    for (std::size_t axis = 0; axis < dimensions; ++axis) {
        if (box.count[axis] == 0) return;
    }
    std::array<std::int64_t, kMostDimensions> first{}, end{};  // elements of the box that the chunk at hand has
    const auto meet = [&](std::size_t axis, std::int64_t from) {
        const std::int64_t chunk = grid.chunk_shape[axis], start = box.start[axis], step = box.step[axis];
        first[axis] = from;
        const std::int64_t left = chunk - 1 - (start + from * step) % chunk;  // of the chunk behind that element
        end[axis] = from + std::min(box.count[axis] - from, left / step + 1);
    };
    for (std::size_t axis = 0; axis < dimensions; ++axis) meet(axis, 0);
    while (true) {
        SelectedPart part;
        part.dimensions = dimensions;
        for (std::size_t axis = 0; axis < dimensions; ++axis) {
            const std::int64_t element = box.start[axis] + first[axis] * box.step[axis];
            part.cell[axis] = element / grid.chunk_shape[axis];
            const std::int64_t within = element % grid.chunk_shape[axis];
            part.chunk_offset += static_cast<std::uint64_t>(within * grid.strides[axis]);
            part.memory_offset += first[axis] * memory_strides[axis];
            const auto count = static_cast<std::uint64_t>(end[axis] - first[axis]);
            const std::int64_t stride = count == 1 ? 0 : box.step[axis] * grid.strides[axis];
            part.grid[axis] = {count, memory_strides[axis], stride};
        }
        take(part);
        std::size_t axis = dimensions;
        while (axis > 0 && end[axis - 1] == box.count[axis - 1]) meet(--axis, 0);
        if (axis == 0) return;
        meet(axis - 1, end[axis - 1]);
    }
}

void cut_part(const SelectedPart& part, std::uint64_t item_bytes, const CutLimits& limits,
              const std::function<void(const ChunkSpan&)>& take) {
    SpanCutter(far_to_near(part), item_bytes, limits, take).cut(0, part.chunk_offset, part.memory_offset);
}

}  // namespace penstock::data
