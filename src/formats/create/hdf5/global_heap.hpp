// GlobalHeap: lists of object references, and text, outside of the attributes that name them, as HDF5 keeps values of
// no fixed size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/create/hdf5/chunk_index.hpp"
#include "formats/create/hdf5/messages.hpp"

namespace penstock::formats {

class GlobalHeap {
  public:
    std::size_t add(const std::vector<Hdf5Reference>& list);  // its number
    std::size_t add_text(const std::string& text);
    void place_in(FileRoom& room);
    // Before place_in(): an empty place.
    HeapPlace place(std::size_t number) const { return places_[number]; }
    // `objects`: the address of each object of the tree.
    std::vector<FileChange> collections(std::span<const std::uint64_t> objects) const;

  private:
    struct HeapValue {
        std::vector<Hdf5Reference> list{};
        std::string text{};  // of what is no list
        std::uint64_t bytes() const { return list.empty() ? text.size() : 8 * list.size(); }
    };
    std::size_t keep(HeapValue value);

    std::vector<HeapValue> kept_{};
    std::vector<HeapPlace> places_{};
};

}  // namespace penstock::formats
