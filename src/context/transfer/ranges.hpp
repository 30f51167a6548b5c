// Ranges as somebody gave them: checked before anything is added up, placed in their allocations, joined.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "context/state.hpp"

namespace penstock::context {

// Memory that the CPU reaches; the rest is the device's.
constexpr bool host_kind(MemoryKind kind) { return kind == MemoryKind::pinned || kind == MemoryKind::system; }

// Throws Error{invalid_argument} that names file, offset and length.
[[noreturn]] void refuse_range(const FileRange& range, const char* operation, std::string cause, std::string advice);

// Reads start within the file, or at its end. Throws as refuse_range.
void check_offset(const FileRange& range, const char* operation, std::uint64_t file_bytes);

// No sum of offsets and lengths may wrap; no memory may be null.
void check_numbers(const char* operation, const std::vector<FileRange>& ranges);

// Sets each range's allocation, as far as anybody knows, and refuses ranges that leave a buffer of this context.
// Answers the memories of this context that the ranges lie in.
std::vector<std::shared_ptr<Memory>> find_allocations(ContextState& context, const Submission& submission,
                                                      std::vector<FileRange>& ranges);

// Ranges that continue each other in file and allocation become one: fewer, larger operations. Copies across
// allocations that happen to be neighbours are refused by devices.
std::vector<FileRange> coalesce(std::vector<FileRange> ranges);

// The policy's plan for them. It knows no names: what it refuses is told of the first one's file.
Plan planned(const policy::RequestFacts& facts, const policy::MachineFacts& machine,
             const std::vector<FileRange>& ranges);

}  // namespace penstock::context
