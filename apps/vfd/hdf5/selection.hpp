// Selections as HDF5 hands them over: for each buffer a dataspace of memory and one of the file, with as many elements
// selected in both. HDF5's own iterators walk them, whatever their shape, and give sequences of bytes. A vector of HDF5
// would be the same pieces, in arrays that it makes anew for each request.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vfd/hdf5/caller.hpp"
#include "vfd/hdf5/driver_class.hpp"
#include "vfd/pieces.hpp"

namespace penstock::vfd {

// HDF5's functions for selections, of the library that calls.
struct SelectionCalls {
    Id (*create)(Id space, std::size_t element_bytes, unsigned flags) = nullptr;
    Status (*next)(Id iterator, std::size_t most_sequences, std::size_t most_elements, std::size_t* sequences,
                   std::size_t* elements, std::uint64_t* offsets, std::size_t* bytes) = nullptr;
    Status (*close)(Id iterator) = nullptr;
    int (*select_type)(Id space) = nullptr;

    explicit SelectionCalls(const Caller& caller) noexcept;
    // False: this HDF5 has none of them where they can be found.
    bool found() const noexcept { 
        return create != nullptr && next != nullptr && close != nullptr && select_type != nullptr;
    }
};

// Shortened by HDF5: a size of 0, or no memory, stands for the one before and for all that follow.
struct SelectionArrays {
    std::uint32_t count = 0;
    const Id* memory_spaces = nullptr;
    const Id* file_spaces = nullptr;
    const Address* offsets = nullptr;
    const std::size_t* element_bytes = nullptr;
    void* const* memory = nullptr;
};

struct SelectionMove {
    bool write = false;
    Use use = Use::any;
};

// Moves what is selected. Returns where the last byte of the file ends.
Address move_selections(Mover& mover, SelectionMove move, const SelectionArrays& arrays, const SelectionCalls& calls);

}  // namespace penstock::vfd
