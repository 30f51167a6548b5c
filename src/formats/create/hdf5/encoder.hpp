// Hdf5Encoder: little-endian fields one behind the other, as the metadata of HDF5 are made of; and types of elements in
// the form that readers of all ages know.
//
// Pure functions of values. They throw Error{unsupported} for what the format cannot say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/create/hdf5/tree.hpp"

namespace penstock::formats {

inline constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};

class Hdf5Encoder {
  public:
    Hdf5Encoder& number(std::uint64_t value, unsigned bytes);
    Hdf5Encoder& address(std::uint64_t value) { return number(value, 8); }
    Hdf5Encoder& text(std::string_view text);
    Hdf5Encoder& padded_text(std::string_view text);  // and a zero, up to the next multiple of 8 bytes from its begin
    Hdf5Encoder& copy(std::span<const std::byte> bytes);
    Hdf5Encoder& pad_to(std::size_t multiple);  // with zeros, counted from the first byte
    std::size_t size() const noexcept { return bytes_.size(); }
    std::vector<std::byte> take() { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_;
};

// Over bytes that are there.
void store_number(std::span<std::byte> into, std::uint64_t value);

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t multiple);
// Of all elements. Throws Error{unsupported} beyond 64 bits.
std::uint64_t element_count(std::span<const std::uint64_t> shape);

std::vector<std::byte> datatype_bytes(const ElementType& type, TextPadding padding);
std::vector<std::byte> reference_type_bytes();
std::vector<std::byte> reference_list_type_bytes();  // a list of references in the global heap, of any length
std::vector<std::byte> text_type_bytes();            // text in the global heap, UTF-8, of any length
std::vector<std::byte> use_type_bytes();             // a reference and a number of a dimension
inline constexpr std::uint32_t kUseBytes = 16;

}  // namespace penstock::formats
