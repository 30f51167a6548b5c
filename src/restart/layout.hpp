// RestartLayout: where everything of a generation lies, made of what all processes know: names, types, shapes and
// attributes. A pure function, so that each process knows the places of its boxes without a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/create/hdf5/layout.hpp"
#include "penstock/restart.hpp"
#include "restart/stored/record.hpp"

namespace penstock::restart {

struct RestartLayout {
    RestartRecord record{};
    std::string text{};  // of the record
    std::uint64_t record_offset = 0;
    std::uint64_t file_bytes = 0;
    formats::Hdf5Tree tree{};  // to make the metadata of a generation of

    // A sum of all but the boxes: the same in processes that make the same file.
    std::uint64_t digest() const;
    // The metadata of the file, with the number of the generation.
    formats::Hdf5Image image(std::uint64_t generation) const;
};

// Throws Error of names and types that HDF5 does not take, and of two fields that do not go together.
RestartLayout lay_out(const std::string& file, std::span<const RestartField> fields,
                      std::span<const SnapshotAttribute> attributes);

}  // namespace penstock::restart
