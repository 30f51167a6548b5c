// Fields whose rows are put into the order of cells on their way to the file: in one piece of memory of bounded size,
// beside the fields, that is filled and written again and again. A gather reads memory some hundred times as fast as a
// file takes it, so that the two need not overlap.
#pragma once

#include <cstdint>
#include <span>

#include "snapshot/move_fields.hpp"
#include "snapshot/sorted/particle_orders.hpp"

namespace penstock::snapshot {

struct SortedPiece {
    FieldPiece piece{};  // begins and ends with a row
    const ParticleOrder* order = nullptr;
    std::uint64_t row_bytes = 0;
};

struct SortedPieces {
    std::span<const SortedPiece> pieces{};
    std::uint64_t room_bytes = 256 * kMiB;  // of all that is under way; a chunk with a checksum may be larger
};

// Throws as move_fields(), and Error{out_of_memory} where the room is not there.
Evidence move_sorted(const Context& context, const FieldTarget& target, const SortedPieces& sorted,
                     const SnapshotWatch& goes_on);

}  // namespace penstock::snapshot
