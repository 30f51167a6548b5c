// NPY, NumPy's file of one array: versions 1 to 3. The one dataset is called "data".
//
// An array in Fortran order keeps its shape: its elements have other strides. Elements with members are bytes here.
#include <algorithm>

#include "formats/faults.hpp"
#include "formats/npy/literal.hpp"
#include "formats/npy/numpy_type.hpp"
#include "formats/parsers.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kMostNpyHeader = std::uint64_t{1} << 20;  // bytes, nearly all of them padding
constexpr std::size_t kMostText = std::size_t{64} << 10;          // characters without padding
constexpr std::uint64_t kNpyBegin = 4096;
constexpr std::uint64_t kMostElement = std::uint64_t{1} << 30;
constexpr std::size_t kFixedBytes = 10;  // in all versions: magic, version, two bytes of the dictionary's size
constexpr std::string_view kMagic = "\x93NUMPY";

std::string_view text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t little(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

struct NpyHeader {
    std::string text;  // of the dictionary
    std::uint64_t data_offset = 0;
};

NpyHeader npy_header(const ByteSource& source) {
    std::vector<std::byte> begin = source.read(0, kNpyBegin);
    const std::string_view text = text_of(begin);
    if (!text.starts_with(kMagic)) throw foreign(source.name(), "npy", begin);
    if (text.size() < kFixedBytes) {
        throw cut_short({source.name()}, "the header begins with " + std::to_string(kFixedBytes) +
                                             " bytes, the file has " + std::to_string(text.size()));
    }
    const int version = static_cast<unsigned char>(text[6]), minor = static_cast<unsigned char>(text[7]);
    if (version < 1 || version > 3 || minor != 0) {
        throw unsupported({source.name()}, "NPY version " + std::to_string(version) + "." + std::to_string(minor),
                          "versions 1.0, 2.0 and 3.0 are known");
    }
    const std::size_t size_bytes = version == 1 ? 2 : 4;
    const std::uint64_t size = text.size() < 8 + size_bytes ? 0 : little(text.substr(8, size_bytes));
    if (size > kMostNpyHeader) {
        throw damaged({source.name()},
                      "a header of " + std::to_string(size) + " bytes; the limit is " + std::to_string(kMostNpyHeader));
    }
    const std::uint64_t from = 8 + size_bytes, start = from + size;
    if (start > text.size()) begin = source.read(0, start);
    if (begin.size() < start) {
        throw cut_short({source.name()}, "the header ends at byte " + std::to_string(start) + ", the file at " +
                                             std::to_string(begin.size()));
    }
    std::string_view dictionary = text_of(begin).substr(from, size);
    const std::size_t last = dictionary.find_last_not_of(" \n\r\t\f");
    dictionary = dictionary.substr(0, last == std::string_view::npos ? 0 : last + 1);
    return {std::string(dictionary), start};
}

Value dictionary_of(const ByteSource& source, const std::string& text) {
    try {
        if (text.size() > kMostText) {
            throw BadDocument{std::to_string(text.size()) + " characters; the limit is " + std::to_string(kMostText)};
        }
        Value found = read_literal(text);
        const Members* members = found.members();
        if (members == nullptr) throw BadDocument{"it is not a dictionary"};
        if (members->size() != 3) throw BadDocument{"it has other keys than descr, fortran_order and shape"};
        for (const char* key : {"descr", "fortran_order", "shape"}) {
            if (found.member(key) == nullptr) throw BadDocument{std::string("it has no key ") + key};
        }
        return found;
    } catch (const BadDocument& bad) {
        throw damaged({source.name()}, "the header is not understood: " + bad.cause);
    }
}

// Bytes of an element with members. Throws BadDocument.
std::uint64_t bytes_of(const Value& descr, std::size_t depth) {
    if (depth > 16) throw BadDocument{"members of members"};
    if (descr.text() != nullptr) return numpy_type(*descr.text()).item_bytes;
    if (descr.list() == nullptr) throw BadDocument{"neither the name of a type nor a list of members"};
    std::uint64_t all = 0;
    for (const Value& one : *descr.list()) {
        const Tuple* member = one.tuple();
        if (member == nullptr || member->items.size() < 2 || member->items.size() > 3) throw BadDocument{"no member"};
        std::uint64_t bytes = bytes_of(member->items[1], depth + 1);
        if (member->items.size() == 3) {
            const Tuple* shape = member->items[2].tuple();
            const auto counts = integers(shape != nullptr ? shape->items : List{member->items[2]}, 0);
            if (!counts) throw BadDocument{"no shape of a member"};
            for (const std::int64_t count : *counts) {
                if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(count), &bytes)) bytes = kMostElement + 1;
            }
        }
        all += std::min(bytes, kMostElement + 1);
        if (all > kMostElement) throw BadDocument{"elements of more than 1 GiB"};
    }
    return all;
}

ElementType type_of(const ByteSource& source, const Value& descr) {
    if (descr.text() != nullptr && descr.text()->find('O') != std::string::npos) {
        throw unsupported(
            {source.name(), "data"}, "its elements (" + *descr.text() + ") are objects of Python",
            "numpy.load(name, allow_pickle=True) unpickles it, which can run any code that the file contains");
    }
    try {
        const ElementType type = descr.text() != nullptr ? numpy_type(*descr.text())
                                                         : raw_type(static_cast<std::uint32_t>(bytes_of(descr, 0)));
        if (type.item_bytes == 0) throw BadDocument{"elements without bytes"};
        return type;
    } catch (const BadDocument& bad) {
        const std::string what = descr.text() != nullptr ? shown(*descr.text()) : "a list of members";
        throw unsupported({source.name(), "data"}, "its type is " + what + ": " + bad.cause, "numpy.load reads it");
    }
}

}  // namespace

std::vector<StoredDataset> parse_npy(const ByteSource& source) {
    const NpyHeader header = npy_header(source);
    const Value dictionary = dictionary_of(source, header.text);
    const Tuple* written = dictionary.member("shape")->tuple();
    const auto shape = written != nullptr ? integers(written->items, 0) : std::nullopt;
    if (!shape) throw damaged({source.name()}, "its shape is no tuple of sizes");
    const bool* is_fortran = dictionary.member("fortran_order")->boolean();
    if (is_fortran == nullptr) throw damaged({source.name()}, "fortran_order is neither True nor False");
    if (shape->size() > data::kMostDimensions) {
        throw unsupported({source.name(), "data"}, "it has " + std::to_string(shape->size()) + " dimensions",
                          "at most 16 can be selected from here; numpy.load reads it");
    }
    const ElementType type = type_of(source, *dictionary.member("descr"));
    StoredDataset dataset = contiguous("data", type, *shape, header.data_offset);
    if (*is_fortran) {
        const std::vector<std::int64_t> reversed(shape->rbegin(), shape->rend());
        dataset.grid.strides = data::c_strides(reversed, type.item_bytes);
        std::reverse(dataset.grid.strides.begin(), dataset.grid.strides.end());
    }
    try {
        data::check_grid(dataset.grid);
    } catch (const Error&) {
        throw damaged({source.name()}, "its shape is " + shown(*shape) + ", which is more than a file can hold");
    }
    const std::uint64_t there = source.size_bytes(), needed = extent_bytes(dataset);
    if (header.data_offset > there || needed > there - header.data_offset) {
        throw cut_short({source.name(), "data"}, "the header promises " + std::to_string(needed) + " bytes of " +
                                                     shown(*shape) + " " + type.name + " at " +
                                                     std::to_string(header.data_offset) + ", the file has " +
                                                     std::to_string(there));
    }
    return {std::move(dataset)};
}

}  // namespace penstock::formats
