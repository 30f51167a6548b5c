// See structure.hpp.
#include "formats/hdf5/structure.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace penstock::formats {

void throw_damaged(std::string cause) { throw BadStructure{BadStructure::Wrong::damaged, std::move(cause)}; }

void throw_unsupported(std::string cause, std::string advice) {
    throw BadStructure{BadStructure::Wrong::unsupported, std::move(cause), std::move(advice)};
}

std::span<const std::byte> StructureFields::take(std::uint64_t bytes) {
    if (bytes > left()) wrong("ends before its fields do");
    const std::span<const std::byte> taken = bytes_.subspan(at_, bytes);
    at_ += bytes;
    return taken;
}

std::uint64_t StructureFields::number(std::uint64_t bytes) {
    std::uint64_t value = 0;
    const std::span<const std::byte> taken = take(bytes);
    for (std::size_t i = 0; i < taken.size(); ++i) value |= std::to_integer<std::uint64_t>(taken[i]) << (8 * i);
    return value;
}

std::optional<std::uint64_t> StructureFields::address() {
    const std::uint64_t value = number(sizes_.address);
    const std::uint64_t undefined = ~std::uint64_t{0} >> (64 - 8 * sizes_.address);
    if (value == undefined) return std::nullopt;
    return value;
}

std::uint64_t StructureFields::needed_address() {
    const auto found = address();
    if (!found) wrong("has no address where it needs one");
    return *found;
}

std::string StructureFields::text() {
    const std::span<const std::byte> rest = bytes_.subspan(at_);
    const auto end = std::find(rest.begin(), rest.end(), std::byte{0});
    if (end == rest.end()) wrong("has a text without end");
    const std::span<const std::byte> taken = take(static_cast<std::uint64_t>(end - rest.begin()));
    skip(1);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

void StructureFields::wrong(const std::string& cause) const { throw_damaged(std::string(what_) + " " + cause); }

unsigned log2_below(std::uint64_t number) noexcept { return static_cast<unsigned>(std::bit_width(number)) - 1; }

unsigned bytes_for(std::uint64_t most) noexcept { return most == 0 ? 1 : log2_below(most) / 8 + 1; }

std::uint64_t checked_product(std::uint64_t one, std::uint64_t other) {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(one, other, &product)) throw_damaged("a size has more than 64 bits");
    return product;
}

}  // namespace penstock::formats
