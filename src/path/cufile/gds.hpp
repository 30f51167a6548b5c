// What the cuFile paths share: turning an operation into cuFile's terms, and cuFile's answers into completions.
#pragma once

#include <memory>

#include "path/cufile/cufile.hpp"
#include "penstock/path.hpp"

namespace penstock::path {

std::unique_ptr<Path> make_gds_sync(PathKind kind, const PathOptions& options);
std::unique_ptr<Path> make_gds_batch(const PathOptions& options);
std::unique_ptr<Path> make_gds_stream(const PathOptions& options);

// Capabilities every cuFile path starts from. cuFile takes any alignment and chooses descriptors by itself.
Capabilities gds_capabilities(PathKind kind, const CuFile& cufile);

// An operation that passed its checks, ready for cuFile; or, status not ok, the completion it gets instead.
struct Prepared {
    cufile::Handle handle = nullptr;
    Completion refused;
};
Prepared prepare(const Operation& operation, const Capabilities& capabilities, CuFile& cufile);

// `result` as cuFile counts: bytes, -errno, or the negative of a cuFile code.
Completion gds_completion(std::uint64_t tag, std::int64_t result) noexcept;

}  // namespace penstock::path
