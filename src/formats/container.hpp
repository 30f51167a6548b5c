// Container: the seam between formats and what moves bytes. A format opens a file and tells names, datasets and places.
//
// It moves no bytes of datasets. Any number of threads may ask one container at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/stored_dataset.hpp"

namespace penstock::formats {

// Where a chunk lies.
struct ChunkPlace {
    std::string file{};  // empty: the file that was opened
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint32_t skipped = 0;    // a bit for each filter that this chunk did not go through
    bool is_behind_link = false;  // the file, or a folder of it within the dataset's: it may be any file
};

class Container {
  public:
    virtual ~Container() = default;
    virtual const char* format() const = 0;
    // Of all datasets, in the order of the file.
    virtual std::vector<std::string> names() const = 0;
    // Throws Error{not_found} with the names that come closest, and Error of metadata that are damaged.
    virtual StoredDataset dataset(const std::string& name) const = 0;
    // Nothing: the chunk is not stored, and its elements have the fill value. Throws Error where the file is damaged.
    virtual std::optional<ChunkPlace> place(const StoredDataset& dataset, std::span<const std::int64_t> cell) const = 0;
};

using ContainerPtr = std::unique_ptr<const Container>;

// A file of datasets of one chunk each, which lie in the file itself. Throws Error{io_error} of two that have one name.
ContainerPtr make_flat(const char* format, const std::string& file, std::vector<StoredDataset> datasets);

}  // namespace penstock::formats
