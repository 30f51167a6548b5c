// HeaderMessage: the parts of an object header, in the version that readers of all ages know (HDF5 file format
// specification, IV.A.2). Each is a pure function of the tree and of the places that it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/create/hdf5/encoder.hpp"

namespace penstock::formats {

struct HeaderMessage {
    std::uint16_t type = 0;
    std::vector<std::byte> body{};
};

// Where a list of references, or a text, lies: an object of a collection of the global heap.
struct HeapPlace {
    std::uint64_t collection = 0;
    std::uint32_t index = 0;
};

// What messages name. Sizes of messages do not depend on it, so that a first pass may know none.
struct NamedPlaces {
    std::span<const std::uint64_t> objects;  // address of each object of the tree
    std::span<const HeapPlace> heap;  // of the lists and texts of the attributes of this object, one behind the other
};

HeaderMessage dataspace_message(const Hdf5Dataset& dataset);
inline constexpr std::uint64_t kFirstLengthOffset = 8;  // in its body: the length that grows
// `address`: of the elements, or of the root of the chunk index.
HeaderMessage layout_message(const Hdf5Dataset& dataset, std::uint64_t address);
inline constexpr std::uint64_t kRootFieldOffset = 3;  // in its body: the root of the chunk index
// The layout of a virtual dataset. `sources`: where the list of them lies.
HeaderMessage virtual_message(const HeapPlace& sources);
HeaderMessage continuation_message(std::uint64_t address, std::uint64_t bytes);
std::vector<HeaderMessage> dataset_messages(const Hdf5Dataset& dataset);  // all but dataspace and layout
std::vector<HeaderMessage> group_messages(std::span<const Hdf5Link> links, std::span<const std::uint64_t> objects);
// Throws Error{unsupported}: the attribute has more bytes than a header takes.
HeaderMessage attribute_message(const Hdf5Attribute& attribute, const NamedPlaces& places);

inline constexpr std::uint64_t kMessageHeadBytes = 8;
std::vector<std::byte> encode_messages(std::span<const HeaderMessage> messages);
inline constexpr std::uint64_t kHeaderPrefixBytes = 16;

struct HeaderPrefix {
    std::size_t messages = 0;       // of all blocks
    std::size_t links = 1;          // that lead to the object
    std::uint64_t block_bytes = 0;  // of the messages of the first block
};
std::vector<std::byte> encode_prefix(const HeaderPrefix& prefix);

}  // namespace penstock::formats
