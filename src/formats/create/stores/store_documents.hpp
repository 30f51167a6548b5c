// StoreDocuments: the seam between kinds of stores, folders whose arrays grow by steps: names and texts.
//
// Pure: no file is touched. The data of a variable lie in data files, each with so many steps one behind the other, or
// with one block of so many. Readers see the steps that the document of the root counts. Implementations:
// ZarrDocuments, RawDocuments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/create/schema.hpp"

namespace penstock::formats {

// The part of each step that one data file has: a block of the grid of the variable.
struct StoreBlock {
    std::size_t variable = 0;
    std::vector<std::uint64_t> number{};  // along each dimension but the growing one; empty: the first block
};

// A compressed step in its data file: chunks one behind the other.
struct StoredStep {
    DataPlace place{};
    StoredChunks chunks{};
};

struct StepIndex {
    std::uint64_t offset_bytes = 0;  // in the data file
    std::vector<std::byte> bytes{};
};

class StoreDocuments {
  public:
    virtual ~StoreDocuments() = default;
    // All names are within the store, of files in it or in a folder that has the name of a variable.
    virtual std::string root_file() const = 0;
    virtual std::string root(std::uint64_t steps) const = 0;
    // The document that an array has for itself, for readers that do not look at the root; empty: there is none.
    virtual std::string array_file(std::size_t variable) const = 0;
    virtual std::string array(std::size_t variable, std::uint64_t steps) const = 0;
    // Where a document lies under another name until it is whole. Readers take it for nothing.
    virtual std::string unfinished_file() const = 0;
    // Whether a step may be blocks in several files. Else a file has all of the variable.
    virtual bool has_blocks() const = 0;
    // The file that has this step of the block; of a variable that does not grow its only one.
    virtual std::string data_file(const StoreBlock& block, std::uint64_t step) const = 0;
    // Steps in one data file; 0: it has all. What is not compressed has the room of all of these from the first one on.
    virtual std::uint64_t steps_in_file(std::size_t variable) const = 0;
    // What a data file begins with, before it has a step.
    virtual std::vector<std::byte> file_head(std::size_t variable) const = 0;
    // What tells where the chunks of a compressed step lie.
    virtual StepIndex step_index(const StoreBlock& block, std::uint64_t step, const StoredStep& stored) const = 0;
};

using StoreDocumentsPtr = std::unique_ptr<StoreDocuments>;

}  // namespace penstock::formats
