// The pieces of one selection, as HDF5 hands them over: many, often of a few bytes, in the order of the file.
//
// Pieces that lie near each other in the file are a window: one system call moves it between the file and a buffer, and
// the pieces are copied from or to there, by the CPU or by one kernel. Bytes between the pieces of a window are written
// back as they were read. HDF5 allows one writer, as its own buffer for small pieces does, which works the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vfd/hdf5/driver_class.hpp"
#include "vfd/mover.hpp"

namespace penstock::vfd {

// HDF5 shortens its arrays: a size of 0, or a use `same_as_before`, stands for the one before and for all that follow.
struct PieceArrays {
    std::uint32_t count = 0;
    const Use* uses = nullptr;
    const Address* offsets = nullptr;
    const std::size_t* bytes = nullptr;
    void* const* memory = nullptr;
};

// Moves them all, whatever their order.
void move_pieces(Mover& mover, bool write, const PieceArrays& arrays);

}  // namespace penstock::vfd
