// What the cuFile paths share: they turn operations into cuFile's terms, and cuFile's results into completions.
#pragma once

#include <memory>

#include "path/cufile/cufile.hpp"
#include "path/make.hpp"
#include "path/path.hpp"

namespace penstock::path {

std::unique_ptr<Path> make_gds_sync(PathKind kind, const PathOptions& options);
std::unique_ptr<Path> make_gds_batch(const PathOptions& options);
std::unique_ptr<Path> make_gds_stream(const PathOptions& options);

// The capabilities that every cuFile path starts from. cuFile accepts any alignment and chooses descriptors itself.
Capabilities gds_capabilities(PathKind kind, const CuFile& cufile);

// An operation that passed its checks, with the handle for cuFile. If refused.status is not ok, the caller gets
// `refused` in its place.
struct Prepared {
    cufile::Handle handle = nullptr;
    Completion refused;
};
Prepared prepare(const Operation& operation, const Capabilities& capabilities, CuFile& cufile);

// Requires: `result` is a number of bytes, -errno, or the negative of a cuFile code.
Completion gds_completion(std::uint64_t tag, std::int64_t result) noexcept;

}  // namespace penstock::path
