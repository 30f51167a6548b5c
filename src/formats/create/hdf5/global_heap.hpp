// GlobalHeap: lists of object references outside of the attributes that name them, as HDF5 keeps values of no fixed
// size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/create/hdf5/chunk_index.hpp"
#include "formats/create/hdf5/messages.hpp"

namespace penstock::formats {

class GlobalHeap {
  public:
    std::size_t add(const std::vector<Hdf5Reference>& list);  // its number
    void place_in(FileRoom& room);
    // Before place_in(): an empty place.
    HeapPlace place(std::size_t list) const { return places_[list]; }
    // `objects`: the address of each object of the tree.
    std::vector<FileChange> collections(std::span<const std::uint64_t> objects) const;

  private:
    std::vector<std::vector<Hdf5Reference>> lists_{};
    std::vector<HeapPlace> places_{};
};

}  // namespace penstock::formats
