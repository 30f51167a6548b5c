// The data of a snapshot on their way: each piece of a field to its place in the file, all in one submission. Checksums
// of chunks are made while the data move, where they lie, and written behind them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/create/hdf5/layout.hpp"
#include "penstock/snapshot.hpp"

namespace penstock::snapshot {

// Bytes of a field one behind the other, and where they go.
struct FieldPiece {
    const SnapshotField* field = nullptr;
    std::uint64_t first_byte = 0;  // of the field
    std::uint64_t bytes = 0;
    std::uint64_t offset_bytes = 0;  // in the file
    std::uint64_t summed_bytes = 0;  // of the chunk that the piece begins; its checksum lies behind it. 0: has none
};

// `first_byte`: of the data of the dataset, where those of the field begin.
std::vector<FieldPiece> pieces_of(const SnapshotField& field, std::uint64_t first_byte,
                                  const formats::Hdf5Dataset& dataset, std::span<const formats::DataPlace> places);

struct FieldTarget {
    const File* file = nullptr;
    std::string name;  // of the snapshot, for errors
    MemoryKind memory = MemoryKind::device;
    TransferOptions transfer{};
};

// Throws Error with the name of the dataset; Error{cancelled} where `goes_on` says no.
Evidence move_fields(const Context& context, const FieldTarget& target, std::span<const FieldPiece> pieces,
                     const SnapshotWatch& goes_on);

}  // namespace penstock::snapshot
