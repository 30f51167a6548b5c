// What the header of a safetensors file says, where it is written as nearly all are: read in one pass, without a tree.
//
// A model has hundreds of tensors, and a program that wants one of them waits for all of their entries. What must stay
// true: where it answers, parse_safetensors says the same. Escapes, letters beyond ASCII, members that the format does
// not have, and all that is wrong are left to that.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::formats {

struct PlainTensor {
    std::string_view name;
    const char* type = nullptr;
    std::uint64_t first = 0, end = 0;                   // bytes in the section of data
    std::size_t first_extent = 0, dimensions = 0;
};

class PlainHeader {
  public:
    // `text`: the header, without its length, which must stay. `data_bytes`: of all tensors. False: it is not so plain.
    // Ensures: the tensors are in the order of their bytes. Names may be there twice: whoever keeps them by name looks.
    bool read(std::string_view text, std::uint64_t data_bytes);

    std::span<const PlainTensor> tensors() const noexcept { return tensors_; }
    std::span<const std::int64_t> shape(const PlainTensor& tensor) const noexcept {
        return std::span(extents_).subspan(tensor.first_extent, tensor.dimensions);
    }
    bool has_metadata() const noexcept { return has_metadata_; }

  private:
    bool order(std::uint64_t data_bytes);

    std::vector<PlainTensor> tensors_;
    std::vector<std::int64_t> extents_;  // of all shapes
    bool has_metadata_ = false;
};

}  // namespace penstock::formats
