// See check_schema.hpp. Names are those that netCDF allows, which HDF5 and Zarr take too.
#include "formats/create/check_schema.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "formats/faults.hpp"

namespace penstock::formats {
namespace {

constexpr std::size_t kLongestName = 256;
constexpr std::size_t kMostRank = 16;

[[noreturn]] void refuse(const std::string& file, std::string cause, std::string advice) {
    throw not_created(file, std::move(cause), std::move(advice));
}

// The length of the UTF-8 character that begins there; 0 where none does.
std::size_t character_bytes(std::string_view text) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    if (length == 0 || length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
    }
    return length;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = character_bytes(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

void check_name(const std::string& file, const std::string& what, const std::string& name) {
    const auto first = name.empty() ? '\0' : name.front();
    const bool begins_well = (static_cast<unsigned char>(first) & 0x80) != 0 || first == '_' ||
                             (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ||
                             (first >= '0' && first <= '9');
    const bool has_control = std::any_of(name.begin(), name.end(), [](char one) {
        return one == '/' || one == '\x7f' || static_cast<unsigned char>(one) < 0x20;
    });
    if (begins_well && !has_control && name.back() != ' ' && name.size() <= kLongestName && is_utf8(name)) return;
    refuse(file, what + " has the name " + shown(name),
           "a name has 1 to 256 bytes of UTF-8, begins with a letter, a digit or '_', and has no '/'");
}

void check_attributes(const std::string& file, const std::string& owner, const std::vector<NewAttribute>& attributes) {
    std::set<std::string> seen;
    for (const NewAttribute& one : attributes) {
        check_name(file, "an attribute of " + owner, one.name);
        const std::string what = "attribute " + shown(one.name) + " of " + owner;
        if (!seen.insert(one.name).second) refuse(file, what + " is given twice", "give it once");
        std::uint64_t count = 1;
        for (const std::uint64_t extent : one.shape) count *= extent;
        if (one.type.kind != 'S' && count * one.type.item_bytes != one.bytes.size()) {
            refuse(file,
                   what + " has " + std::to_string(one.bytes.size()) + " bytes, not " +
                       std::to_string(count * one.type.item_bytes),
                   "give all of its elements");
        }
    }
}

void check_dimensions(const FileSchema& schema, const std::string& file) {
    std::set<std::string> seen;
    std::size_t growing = 0;
    for (const NewDimension& one : schema.dimensions) {
        check_name(file, "a dimension", one.name);
        const std::string what = "dimension " + shown(one.name);
        if (!seen.insert(one.name).second) refuse(file, what + " is given twice", "give it once");
        growing += one.grows ? 1 : 0;
        if (!one.grows && one.length == 0) refuse(file, what + " has length 0", "give at least 1");
    }
    if (growing > 1) refuse(file, "two dimensions grow", "use one file for each");
}

std::uint64_t bytes_of(const NewVariable& variable, const std::vector<std::uint64_t>& shape) {
    constexpr std::uint64_t most = std::uint64_t{1} << 60;
    std::uint64_t bytes = variable.type.item_bytes;
    for (const std::uint64_t extent : shape) {
        if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > most) {
            throw Error(ErrorCode::invalid_argument, "create",
                        "variable " + shown(variable.name) + " is larger than any file", "check its shape");
        }
    }
    return bytes;
}

void check_chunk(const FileSchema& schema, const std::string& file, const NewVariable& one) {
    if (one.chunk.empty()) return;
    const std::string what = "variable " + shown(one.name);
    if (one.filters.empty()) refuse(file, what + " has chunks and no filters", "compress it, or give no chunks");
    const std::vector<std::uint64_t> shape = step_shape(schema, one);
    if (one.chunk.size() != shape.size()) {
        refuse(file,
               what + " has " + std::to_string(shape.size()) + " dimensions but time, and chunks have " +
                   std::to_string(one.chunk.size()),
               "give a length along each of them");
    }
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (one.chunk[axis] >= 1 && one.chunk[axis] <= shape[axis]) continue;
        refuse(file,
               what + " has " + std::to_string(shape[axis]) + " elements along a dimension, and chunks of " +
                   std::to_string(one.chunk[axis]),
               "give chunks of 1 element to all of them");
    }
}

void check_variable(const FileSchema& schema, const std::string& file, const NewVariable& one) {
    const std::string what = "variable " + shown(one.name);
    check_name(file, "a variable", one.name);
    check_attributes(file, what, one.attributes);
    if (one.dimensions.size() > kMostRank) {
        refuse(file, what + " has " + std::to_string(one.dimensions.size()) + " dimensions", "use at most 16");
    }
    for (std::size_t axis = 0; axis < one.dimensions.size(); ++axis) {
        if (one.dimensions[axis] >= schema.dimensions.size()) {
            refuse(file,
                   what + " has dimension " + std::to_string(one.dimensions[axis]) + " of " +
                       std::to_string(schema.dimensions.size()),
                   "define the dimension first");
        }
        if (axis > 0 && schema.dimensions[one.dimensions[axis]].grows) {
            refuse(file, what + " grows along axis " + std::to_string(axis), "let the growing dimension be the first");
        }
    }
    check_chunk(schema, file, one);
    const std::uint64_t bytes = step_bytes(schema, one);
    if (!one.values.empty() && (grows(schema, one) || one.values.size() != bytes)) {
        refuse(file,
               what + " has values of " + std::to_string(one.values.size()) + " bytes, not " +
                   std::to_string(grows(schema, one) ? 0 : bytes),
               "give all values, and none of what grows");
    }
}

}  // namespace

bool grows(const FileSchema& schema, const NewVariable& variable) {
    return !variable.dimensions.empty() && schema.dimensions[variable.dimensions.front()].grows;
}

std::vector<std::uint64_t> step_shape(const FileSchema& schema, const NewVariable& variable) {
    std::vector<std::uint64_t> shape;
    for (const std::size_t index : variable.dimensions) {
        if (!schema.dimensions[index].grows) shape.push_back(schema.dimensions[index].length);
    }
    return shape;
}

std::uint64_t step_bytes(const FileSchema& schema, const NewVariable& variable) {
    return bytes_of(variable, step_shape(schema, variable));
}

std::vector<std::uint64_t> block_shape(const FileSchema& schema, const NewVariable& variable) {
    return variable.block.empty() ? step_shape(schema, variable) : variable.block;
}

std::uint64_t block_bytes(const FileSchema& schema, const NewVariable& variable) {
    return bytes_of(variable, block_shape(schema, variable));
}

Error defined_twice(const std::string& file, const std::string& variable) {
    return not_created(file, "variable " + shown(variable) + " is given twice", "give it once");
}

void check_schema(const FileSchema& schema, const std::string& file) {
    check_dimensions(schema, file);
    check_attributes(file, "the file", schema.attributes);
    std::set<std::string> seen;
    for (const NewVariable& one : schema.variables) {
        check_variable(schema, file, one);
        if (!seen.insert(one.name).second) {
            throw defined_twice(file, one.name);
        }
    }
}

}  // namespace penstock::formats
