// Types of elements, as the datatype messages of HDF5 describe them.
//
// What must stay true: a type whose bytes are no values (references, text and lists of any length, numbers with unused
// bits) is refused with its reason, never handed out as something that it is not.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/hdf5/structure.hpp"
#include "formats/stored_dataset.hpp"

namespace penstock::formats {

struct DescribedType {
    ElementType type{};
    std::vector<std::int64_t> dimensions{};  // that an array type adds to those of the dataset
    std::uint32_t bytes = 0;                 // of all of it
};

// Throws BadStructure.
DescribedType read_type(StructureFields& fields);

}  // namespace penstock::formats
