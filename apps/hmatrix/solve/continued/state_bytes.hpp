// Shared by the two files of a checkpoint: header fields, checksums, and transfers that must be complete.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>

#include "penstock/checksum.hpp"
#include "penstock/context.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {

static_assert(std::endian::native == std::endian::little, "fields are copied as they lie in memory");

template <class Bytes, class Value>
void put(Bytes& bytes, std::size_t at, const Value& value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class Value, class Bytes>
Value get(const Bytes& bytes, std::size_t at) {
    Value value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

inline std::uint32_t sum_of(std::span<const std::byte> bytes) { return checksum(ChecksumKind::crc32, bytes); }

inline MemoryView view_of(void* data, std::uint64_t bytes) { return {data, bytes, MemoryKind::system}; }

struct StateFile {
    const char* operation;
    const std::string& name;
};

[[noreturn]] inline void refuse(const StateFile& file, const std::string& cause, const std::string& advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = file.operation;
    info.file = file.name;
    info.cause = cause;
    info.advice = advice;
    throw Error(std::move(info));
}

inline void require_whole(const Outcome& outcome, std::uint64_t bytes, const StateFile& file) {
    if (!outcome.error.ok()) throw Error(outcome.error);
    if (outcome.bytes != bytes) refuse(file, "the file ended while it was read", {});
}

}  // namespace penstock::hmatrix
