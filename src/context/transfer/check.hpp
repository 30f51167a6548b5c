// check(): the first step of a transfer. It refuses extents that make no sense, before any of them is added up, and
// says of the others where their memory and their file end.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "context/files/extent.hpp"
#include "context/transfer/submission.hpp"

namespace penstock::context {

struct Checked {
    std::vector<Extent> extents;                    // those that continue each other are joined
    std::vector<std::shared_ptr<Memory>> memories;  // of this context, that the extents lie in
    std::optional<std::uint64_t> end_position;      // the request's first byte beyond the end of a file
};

// Requires: the extents name open files of the submission's context.
// Throws Error{invalid_argument} that names file, offset and length.
Checked check(const Submission& submission, std::vector<Extent> extents);

// A read starts within the file, or at its end. Throws as check().
void check_offset(const Extent& extent, const char* operation, std::uint64_t file_bytes);

}  // namespace penstock::context
