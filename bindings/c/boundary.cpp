// See boundary.hpp. Reporting an error allocates no memory, because it must work when memory ran out.
#include "boundary.hpp"

#include <algorithm>
#include <new>

namespace penstock::c {
namespace {

constexpr std::uint64_t kLargestStruct = 65536;  // a larger struct_size is a mistake and not a future version

bool continues_character(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

template <std::uint64_t kSize>
void copy_field(char (&to)[kSize], std::string_view text) noexcept {
    copy_text(to, kSize, text);
}

// A name in the advice of the C++ API, and its name in C.
struct Words {
    std::string_view theirs, ours;
};
constexpr Words kWords[] = {
    {"OpenMode::read_write", "PENSTOCK_READ_WRITE"},
    {"Context::allocate or wrap", "penstock_buffer_allocate or penstock_wrap"},
};

// Copies advice, which may end with a name of the C++ API.
template <std::uint64_t kSize>
void copy_advice(char (&to)[kSize], std::string_view text) noexcept {
    for (const auto& [theirs, ours] : kWords) {
        const std::size_t at = text.rfind(theirs);
        if (at == std::string_view::npos) continue;
        std::uint64_t used = 0;
        for (const std::string_view part : {text.substr(0, at), ours, text.substr(at + theirs.size())}) {
            copy_text(to + used, kSize - used, part);
            used += std::strlen(to + used);
        }
        return;
    }
    copy_field(to, text);
}

int fill(penstock_error* error, ErrorCode code, const char* operation, const char* cause) noexcept {
    if (error != nullptr) {
        clear(error);
        error->code = static_cast<int>(code);
        copy_field(error->operation, operation);
        copy_field(error->cause, cause);
        copy_field(error->message, cause);
    }
    return static_cast<int>(code);
}

int fill(penstock_error* error, const Error& thrown) noexcept {
    const ErrorInfo& info = thrown.info();
    const ErrorCode code = info.ok() ? ErrorCode::internal : info.code;
    fill(error, code, info.operation.c_str(), info.cause.c_str());
    if (error != nullptr) {
        error->system_code = info.system_code;
        error->offset_bytes = info.offset_bytes;
        error->length_bytes = info.length_bytes;
        copy_field(error->file, info.file);
        copy_advice(error->advice, info.advice);
        copy_advice(error->message, thrown.what());
    }
    return static_cast<int>(code);
}

}  // namespace

void copy_text(char* to, std::uint64_t capacity, std::string_view text) noexcept {
    std::size_t bytes = std::min<std::size_t>(text.size(), capacity - 1);
    if (bytes < text.size()) {
        while (bytes > 0 && continues_character(text[bytes])) --bytes;
    }
    std::memcpy(to, text.data(), bytes);
    to[bytes] = '\0';
}

void give_text(penstock_text* to, std::string_view text) {
    if (to == nullptr) refuse("return text", "the penstock_text is null", "pass a valid pointer");
    if (to->data == nullptr && to->capacity != 0) {
        refuse("return text", "penstock_text.data is null but its capacity is not 0", "point data at capacity bytes");
    }
    to->needed = text.size() + 1;
    if (to->capacity != 0) copy_text(to->data, to->capacity, text);
}

bool usable(const penstock_error* error) noexcept {
    return error == nullptr || (error->struct_size >= sizeof(penstock_error) && error->struct_size <= kLargestStruct);
}

void clear(penstock_error* error) noexcept {
    if (error == nullptr) return;
    const std::uint64_t size = error->struct_size;
    *error = penstock_error{};
    error->struct_size = size;
}

int report_current_exception(const char* operation, penstock_error* error) noexcept {
    try {
        throw;
    } catch (const Error& thrown) {
        return fill(error, thrown);
    } catch (const std::bad_alloc&) {
        return fill(error, ErrorCode::out_of_memory, operation, "the process is out of memory");
    } catch (const std::exception& thrown) {
        return fill(error, ErrorCode::internal, operation, thrown.what());
    } catch (...) {
        return fill(error, ErrorCode::internal, operation, "an exception of unknown type");
    }
}

void refuse(const char* operation, const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, operation, cause, advice);
}

void check_struct(const char* name, const void* given, const StructSizes& sizes) {
    if (sizes.given_bytes < sizes.first_bytes || sizes.given_bytes > kLargestStruct) {
        refuse("check arguments", std::string(name) + ".struct_size is " + std::to_string(sizes.given_bytes),
               "set it to sizeof(" + std::string(name) + ")");
    }
    const auto* bytes = static_cast<const unsigned char*>(given);
    for (std::uint64_t i = sizes.known_bytes; i < sizes.given_bytes; ++i) {
        if (bytes[i] == 0) continue;
        refuse("check arguments", std::string(name) + " sets a field that this library does not know",
               "leave it zero or use a newer libpenstock");
    }
}

}  // namespace penstock::c
