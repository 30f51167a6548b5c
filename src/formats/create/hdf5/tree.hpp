// Hdf5Tree: what a new file of HDF5 holds, as plain values: groups, datasets, links and attributes.
//
// Objects have numbers, so that several links name one dataset and attributes refer to objects without a search. Knows
// neither offsets nor bytes of the format: layout.hpp makes those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/create/schema.hpp"

namespace penstock::formats {

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};  // maximal length of a dimension that may grow

using ObjectNumber = std::size_t;  // in Hdf5Tree::objects; 0 is the root group

enum class TextPadding : std::uint8_t { null_terminated, null_padded, space_padded };

struct Hdf5Reference {
    ObjectNumber object = 0;
    std::uint32_t dimension = 0;  // of a dataset that uses a dimension scale
};

struct Hdf5Attribute {
    enum class Holds : std::uint8_t {
        values,           // numbers or text of fixed length
        texts,            // text of any length, each as long as it is
        references,       // one object reference for each list, which is its first
        reference_lists,  // lists of object references, as DIMENSION_LIST
        uses,             // pairs of an object and its dimension, one for each list, as REFERENCE_LIST
    };
    NewAttribute value{};  // the name; type, shape and bytes of values
    Holds holds = Holds::values;
    std::vector<std::vector<Hdf5Reference>> lists{};
    std::vector<std::string> texts{};  // UTF-8, as many as the shape of the value has elements
    TextPadding padding = TextPadding::null_terminated;
};

// Rows of a dataset of another file, which are rows of a virtual dataset.
struct Hdf5Source {
    std::string file;  // a name without folder: beside the file that has the virtual dataset
    std::string path;
    std::uint64_t first_row = 0;  // of the virtual dataset
    std::uint64_t rows = 0;       // all of the other dataset
};

struct Hdf5Dataset {
    ElementType type{};
    TextPadding padding = TextPadding::null_terminated;
    std::vector<std::uint64_t> shape{};
    std::vector<std::uint64_t> most{};          // maximal shape, kNoLimit where there is none; empty: the shape
    std::vector<std::uint64_t> chunk{};         // shape of a chunk; empty: the elements lie one behind the other
    std::vector<data::Filter> filters{};        // that the stored chunks went through: deflate, shuffle, fletcher32
    std::vector<std::uint64_t> stored_bytes{};  // of each chunk, in C order; empty: filters keep the size of chunks
    std::vector<std::byte> fill{};              // one element, in the stored order; empty: zeros
    bool has_data = true;                       // false: readers find the fill value
    std::vector<Hdf5Source> sources{};          // of a virtual dataset; it has no data of its own
};

struct Hdf5Link {
    enum class Leads : std::uint8_t { to_object, to_path, to_other_file };
    std::string name;
    Leads leads = Leads::to_object;
    ObjectNumber object = 0;
    std::string path{};
    std::string file{};
};

struct Hdf5Object {
    bool is_group = false;
    Hdf5Dataset dataset{};
    std::vector<Hdf5Link> links{};  // of a group, in the order in which readers list them
    std::vector<Hdf5Attribute> attributes{};
};

struct Hdf5Tree {
    std::string file{};  // for errors
    std::vector<Hdf5Object> objects{};
    // Datasets whose first length changes in place later. The fields with their lengths lie close together from the
    // beginning of the file on, in this order.
    std::vector<ObjectNumber> growing{};
};

// The group of that path, made with those above it where they lack. An empty path: the root.
ObjectNumber add_group(Hdf5Tree& tree, const std::string& path);
// Adds an object and a link of the group to it. A name with slashes makes the groups that it names, where they lack.
ObjectNumber add_object(Hdf5Tree& tree, const std::string& path, Hdf5Object object);
// Throws Error{invalid_argument}: the group has a member of that name, or the name is none.
void add_link(Hdf5Tree& tree, ObjectNumber group, Hdf5Link link);
Hdf5Attribute value_attribute(NewAttribute value);

}  // namespace penstock::formats
