// Value: what a document says, as a tree: of JSON, and of the literals of Python that are the headers of NPY files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace penstock::formats {

struct Value;
struct Number {
    std::string text;  // as written, so that no digit is lost
};
using List = std::vector<Value>;
struct Tuple {  // of Python
    List items;
};
struct Member;
using Members = std::vector<Member>;  // of an object, in order; no name is there twice

struct Value {
    std::variant<std::monostate, bool, Number, std::string, List, Tuple, Members> is;

    bool is_null() const noexcept { return std::holds_alternative<std::monostate>(is); }
    const bool* boolean() const noexcept { return std::get_if<bool>(&is); }
    const Number* number() const noexcept { return std::get_if<Number>(&is); }
    const std::string* text() const noexcept { return std::get_if<std::string>(&is); }
    const List* list() const noexcept { return std::get_if<List>(&is); }
    const Tuple* tuple() const noexcept { return std::get_if<Tuple>(&is); }
    const Members* members() const noexcept { return std::get_if<Members>(&is); }
    // The member of an object; null where it has none, or this is none.
    const Value* member(std::string_view name) const noexcept;
    // An integer of 64 bits, written without fraction and exponent.
    std::optional<std::int64_t> integer() const noexcept;
};

struct Member {
    std::string name;
    Value value;
};

// Integers from `least` on; nothing where it is another list.
std::optional<std::vector<std::int64_t>> integers(const List& list, std::int64_t least);

// What a parser of documents throws; its user says of which file.
struct BadDocument {
    std::string cause;
};

inline constexpr std::size_t kMostDepth = 64;
inline constexpr std::size_t kMostValues = std::size_t{1} << 21;  // of one document

}  // namespace penstock::formats
