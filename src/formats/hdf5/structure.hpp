// What the structures of an HDF5 file are read with: BadStructure, which says what is wrong with one, and
// StructureFields, the numbers of one in their order.
//
// Nothing here knows names of files: who knows them makes an Error of a BadStructure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::formats {

struct BadStructure {
    enum class Wrong : std::uint8_t { damaged, cut_short, unsupported };
    Wrong kind = Wrong::damaged;
    std::string cause{};
    std::string advice{};
};

[[noreturn]] void throw_damaged(std::string cause);
[[noreturn]] void throw_unsupported(std::string cause, std::string advice = {});

// Bytes of an address in the file and of a length, as its superblock says.
struct FieldSizes {
    unsigned address = 8, length = 8;
};

// Throws BadStructure where the structure ends before its fields do.
class StructureFields {
  public:
    // `what`: of the structure, for errors; must outlive this.
    StructureFields(std::span<const std::byte> bytes, FieldSizes sizes, std::string_view what)
        : bytes_(bytes), sizes_(sizes), what_(what) {}

    // Little-endian; at most 8 bytes.
    std::uint64_t number(std::uint64_t bytes);
    std::uint64_t length() { return number(sizes_.length); }
    // Nothing: the address is undefined, as of what is not stored.
    std::optional<std::uint64_t> address();
    // As address(), of what must be there.
    std::uint64_t needed_address();
    std::span<const std::byte> take(std::uint64_t bytes);
    void skip(std::uint64_t bytes) { take(bytes); }
    // Up to a zero, which is skipped.
    std::string text();
    std::size_t left() const noexcept { return bytes_.size() - at_; }
    std::size_t at() const noexcept { return at_; }
    FieldSizes sizes() const noexcept { return sizes_; }
    [[noreturn]] void wrong(const std::string& cause) const;

  private:
    std::span<const std::byte> bytes_;
    FieldSizes sizes_;
    std::string_view what_;
    std::size_t at_ = 0;
};

// Bytes that a number up to `most` takes, as the newer structures of HDF5 count them.
unsigned bytes_for(std::uint64_t most) noexcept;
// Requires: number is not 0.
unsigned log2_below(std::uint64_t number) noexcept;
// Throws BadStructure beyond 64 bits.
std::uint64_t checked_product(std::uint64_t one, std::uint64_t other);

}  // namespace penstock::formats
