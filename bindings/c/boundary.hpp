// The border between C++ and C: exceptions end here, structs are checked by size here, text is cut to fit here.
//
// Every entry of penstock.h runs inside guarded(); nothing that throws is called outside it. Structs of the caller are
// read by struct_size alone (convention 5), so programs built against older and newer headers both work.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "penstock.h"
#include "penstock/error.hpp"

namespace penstock::c {

// Copies what fits, cut at a UTF-8 boundary, always terminated. capacity > 0.
void copy_text(char* to, std::uint64_t capacity, std::string_view text) noexcept;
// Convention 6. Throws Error{invalid_argument} for a text struct that cannot be written.
void give_text(penstock_text* to, std::string_view text);

// Whether details may be written: null, or of a size that holds all fields.
bool usable(const penstock_error* error) noexcept;
void clear(penstock_error* error) noexcept;
// Call inside a catch block: fills `error` from the exception in flight and returns its code.
int report_current_exception(const char* operation, penstock_error* error) noexcept;

// Runs `body`; whatever it throws becomes a code and, where wanted, details.
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

// Throws unless struct_size says all fields of the first version are there and what we do not know is zero.
void check_struct(const char* name, const void* given, std::uint64_t struct_size, std::uint64_t first_bytes,
                  std::uint64_t known_bytes);

// The field `reserved`, where a struct has one, is zero: a later version may give it a meaning.
template <typename Struct>
void check_reserved(const char* name, const Struct& given) {
    if constexpr (requires { given.reserved; }) {
        if (given.reserved == 0) return;
        refuse("check arguments", std::string(name) + ".reserved is " + std::to_string(given.reserved) + ", not zero",
               "clear the struct before filling it, or use its _INIT");
    }
}

// A caller's struct as this library knows it; null gives all defaults. kFirst: sizeof of the struct's first version.
template <typename Struct, std::uint64_t kFirst = sizeof(Struct)>
Struct copied(const char* name, const Struct* given) {
    static_assert(std::is_trivially_copyable_v<Struct>);
    Struct mine{};
    if (given == nullptr) return mine;
    check_struct(name, given, given->struct_size, kFirst, sizeof(Struct));
    const std::uint64_t bytes = given->struct_size < sizeof(Struct) ? given->struct_size : sizeof(Struct);
    std::memcpy(static_cast<void*>(&mine), given, bytes);
    check_reserved(name, mine);
    return mine;
}

// For pointers the caller must give.
template <typename Value>
Value& required(const char* name, Value* pointer) {
    if (pointer == nullptr) refuse("check arguments", std::string(name) + " is null", "pass a valid pointer");
    return *pointer;
}

}  // namespace penstock::c
