// The boundary between C++ and C: it converts exceptions to codes, checks structs by size and cuts text to fit.
//
// Every function of penstock.h runs its body inside guarded(), and nothing that throws is called outside of it. The
// caller's structs are read by struct_size only (convention 5), so that programs built with older and newer headers
// both work.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "penstock.h"
#include "penstock/error.hpp"

namespace penstock::c {

// Copies what fits, cuts at a UTF-8 boundary, and always terminates the text. Requires: capacity > 0.
void copy_text(char* to, std::uint64_t capacity, std::string_view text) noexcept;
// Follows convention 6. Throws Error{invalid_argument} if the text struct cannot be written.
void give_text(penstock_text* to, std::string_view text);

// Returns whether `error` is null or has a size that holds all fields.
bool usable(const penstock_error* error) noexcept;
void clear(penstock_error* error) noexcept;
// Requires: the caller is in a catch block. Fills `error` from the current exception and returns its code.
int report_current_exception(const char* operation, penstock_error* error) noexcept;

// Runs `body`. Turns an exception into a code and, if `error` is given, details.
template <typename Body>
int guarded(const char* operation, penstock_error* error, Body&& body) noexcept {
    if (!usable(error)) return PENSTOCK_INVALID_ARGUMENT;
    try {
        body();
        clear(error);
        return PENSTOCK_OK;
    } catch (...) {
        return report_current_exception(operation, error);
    }
}

[[noreturn]] void refuse(const char* operation, const std::string& cause, const std::string& advice = {});

struct StructSizes {
    std::uint64_t given_bytes;  // struct_size
    std::uint64_t first_bytes;  // of the struct's first version
    std::uint64_t known_bytes;  // of this library's version
};
// Throws unless struct_size includes all fields of the first version and all bytes unknown to this library are zero.
void check_struct(const char* name, const void* given, const StructSizes& sizes);

// Throws unless the field `reserved`, if the struct has one, is zero: a later version may give it a meaning.
template <typename Struct>
void check_reserved(const char* name, const Struct& given) {
    if constexpr (requires { given.reserved; }) {
        if (given.reserved == 0) return;
        refuse("check arguments", std::string(name) + ".reserved is " + std::to_string(given.reserved) + ", not zero",
               "clear the struct before filling it, or use its _INIT");
    }
}

// Returns the caller's struct as this library knows it. Null gives all defaults. kFirst is the size of the struct's
// first version.
template <typename Struct, std::uint64_t kFirst = sizeof(Struct)>
Struct copied(const char* name, const Struct* given) {
    static_assert(std::is_trivially_copyable_v<Struct>);
    Struct mine{};
    if (given == nullptr) return mine;
    check_struct(name, given, {given->struct_size, kFirst, sizeof(Struct)});
    const std::uint64_t bytes = given->struct_size < sizeof(Struct) ? given->struct_size : sizeof(Struct);
    std::memcpy(static_cast<void*>(&mine), given, bytes);
    check_reserved(name, mine);
    return mine;
}

// Throws if a pointer that the caller must give is null.
template <typename Value>
Value& required(const char* name, Value* pointer) {
    if (pointer == nullptr) refuse("check arguments", std::string(name) + " is null", "pass a valid pointer");
    return *pointer;
}

}  // namespace penstock::c
