// ObjectHeader: the messages of one object of an HDF5 file, of all blocks of its header (versions 1 and 2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/hdf5/metadata_blocks.hpp"

namespace penstock::formats {

struct ObjectMessage {
    std::uint16_t type = 0;
    bool is_shared = false;             // the body says where the message lies
    std::uint64_t order = 0;            // in which it was made, where the header keeps that
    std::uint64_t address = 0;          // of the body
    std::span<const std::byte> body{};  // in a block of the header
};

// Types of messages (HDF5 file format specification, IV.A.2).
enum MessageType : std::uint16_t {
    kSpaceMessage = 0x01,
    kLinkInfoMessage = 0x02,
    kTypeMessage = 0x03,
    kOldFillMessage = 0x04,
    kFillMessage = 0x05,
    kLinkMessage = 0x06,
    kExternalMessage = 0x07,
    kLayoutMessage = 0x08,
    kGroupInfoMessage = 0x0A,
    kFiltersMessage = 0x0B,
    kContinuationMessage = 0x10,
    kTableMessage = 0x11,
};

struct ObjectHeader {
    std::vector<ObjectMessage> messages{};
    std::vector<BlockBytes> blocks{};  // that the messages lie in

    // Null: it has none of that type.
    const ObjectMessage* find(std::uint16_t type) const noexcept;
    bool is_dataset() const noexcept { return find(kLayoutMessage) != nullptr; }
    bool is_group() const noexcept { return find(kTableMessage) != nullptr || find(kLinkInfoMessage) != nullptr; }
};

// Throws BadStructure.
ObjectHeader read_object(const MetadataBlocks& blocks, std::uint64_t address);
// The fields of a message, in its own block or, where it is shared, in that of a named type. `holder` keeps them.
// Throws BadStructure.
StructureFields message_fields(const MetadataBlocks& blocks, const ObjectMessage& message, ObjectHeader& holder);

}  // namespace penstock::formats
