// A table of boxes from Python: a row has the places of the first item, the extents, and the strides of each side.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "int_table.hpp"
#include "penstock/box.hpp"

namespace penstock::python {

// A memory that contains boxes, and the columns of the table with their places in it.
struct Side {
    const char* name;
    const MemoryView& memory;
    std::size_t offset_column;
    std::size_t stride_column;  // of the first dimension
};

class BoxTable {
  public:
    BoxTable(nb::handle object, const char* operation, std::size_t sides)
        : table_(object, operation), sides_(sides), dimensions_((table_.columns() - sides) / (1 + sides)) {
        if (table_.columns() >= sides && (table_.columns() - sides) % (1 + sides) == 0) return;
        const std::string extra = sides == 2 ? "2 + 3 * dimensions" : "1 + 2 * dimensions";
        throw Error(ErrorCode::invalid_argument, operation,
                    "a table of " + std::to_string(table_.columns()) + " columns", "give " + extra);
    }

    std::size_t rows() const noexcept { return table_.rows(); }
    Side side(std::size_t index, const char* name, const MemoryView& memory) const noexcept {
        return {name, memory, index, sides_ + dimensions_ * (1 + index)};
    }

    // Returns the place of the first item. Throws Error that names the row if an item lies outside the memory.
    std::byte* place(std::size_t row, const Side& side, std::uint64_t item_bytes) const {
        return static_cast<std::byte*>(side.memory.data) + offset(row, side, item_bytes);
    }

    // The same as bytes from the begin of the memory.
    std::uint64_t offset(std::size_t row, const Side& side, std::uint64_t item_bytes) const {
        const std::uint64_t first = table_.count(row, side.offset_column, "offset");
        ByteSpan span;
        try {
            std::vector<std::uint64_t> extents(dimensions_);
            for (std::size_t d = 0; d < dimensions_; ++d) extents[d] = table_.count(row, sides_ + d, "extent");
            span = byte_span(item_bytes, extents, table_.row(row).subspan(side.stride_column, dimensions_));
        } catch (const Error& error) {
            if (error.info().operation != kLayOut) throw;
            table_.refuse(row, error.info().cause, error.info().advice);
        }
        const std::uint64_t before = 0 - static_cast<std::uint64_t>(span.low);
        const auto after = static_cast<std::uint64_t>(span.high);
        if (before > first || first > side.memory.bytes || after > side.memory.bytes - first) {
            table_.refuse(row, std::string("the ") + side.name + " reaches from byte " + std::to_string(first) +
                                   " down by " + std::to_string(before) + " and up by " + std::to_string(after) +
                                   ", out of the " + std::to_string(side.memory.bytes) + " bytes there are");
        }
        return first;
    }

    // Splits a row into boxes with the fewest dimensions.
    void split(std::size_t row, Box item, const std::function<void(const Box&)>& take) const {
        std::array<BoxDimension, kArrayDimensions> all;
        const auto numbers = table_.row(row).subspan(sides_);
        for (std::size_t d = 0; d < std::min(dimensions_, all.size()); ++d) {
            all[d].extent = static_cast<std::uint64_t>(numbers[d]);
            all[d].destination_stride = numbers[dimensions_ + d];
            all[d].source_stride = sides_ == 2 ? numbers[2 * dimensions_ + d] : 0;
        }
        try {
            if (dimensions_ > all.size()) table_.refuse(row, std::to_string(dimensions_) + " dimensions", "use 64");
            split_box(item, {all.data(), dimensions_}, take);
        } catch (const Error& error) {
            if (error.info().operation != kLayOut) throw;
            table_.refuse(row, error.info().cause, error.info().advice);
        }
    }

  private:
    static constexpr const char* kLayOut = "lay out a box";
    IntTable table_;
    std::size_t sides_;
    std::size_t dimensions_;
};

}  // namespace penstock::python
