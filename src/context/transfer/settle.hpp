// What the end of a write owes its files: durability where it was asked for; and new files hear which bytes they have,
// for close() must know of holes.
#pragma once

#include <memory>
#include <vector>

#include "context/files/announced.hpp"
#include "context/files/open_file.hpp"
#include "context/transfer/ranges.hpp"
#include "penstock/outcome.hpp"

namespace penstock::context {

// Waits until the storage has what was written; the time counts, a failure becomes the outcome's error.
void sync_files(const std::vector<std::shared_ptr<OpenFile>>& files, Outcome& outcome);

struct NewBytes {
    std::shared_ptr<OpenFile> file;
    std::vector<OpenFile::Extent> extents;
};

// What a write moves into new files, for each of them.
std::vector<NewBytes> bytes_of_new_files(const Announced::Files& files, const std::vector<FileRange>& ranges);

}  // namespace penstock::context
