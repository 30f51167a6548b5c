// The links of a group, however the file keeps them: in a symbol table, in the group's header, or in a heap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/hdf5/object_header.hpp"

namespace penstock::formats {

struct GroupLink {
    enum class LinkTarget : std::uint8_t { to_object, to_path, elsewhere };
    std::string name{};
    LinkTarget leads = LinkTarget::to_object;
    std::uint64_t address = 0;  // of the object's header
    std::string path{};         // to_path: in this file
    std::uint64_t order = 0;    // in which it was made, where the group keeps that
};

// As they were made where the group keeps that order, else by name. Throws BadStructure. Requires: is_group().
std::vector<GroupLink> read_links(const MetadataBlocks& blocks, const ObjectHeader& group);

}  // namespace penstock::formats
