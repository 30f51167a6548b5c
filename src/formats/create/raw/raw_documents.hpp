// RawDocuments: the names and texts of a store of raw files. NAME.raw has all steps of a variable, one behind the
// other. penstock.json says what they are, and how many steps are finished.
#pragma once

#include <string>
#include <vector>

#include "formats/create/stores/store_documents.hpp"

namespace penstock::formats {

class RawDocuments final : public StoreDocuments {
  public:
    // Throws Error{invalid_argument} of a type that has no name in NumPy.
    RawDocuments(const FileSchema& schema, const std::string& store);

    std::string root_file() const override;
    std::string root(std::uint64_t steps) const override;
    std::string array_file(std::size_t) const override { return {}; }
    std::string array(std::size_t, std::uint64_t) const override { return {}; }
    std::string unfinished_file() const override;
    bool has_blocks() const override { return false; }
    std::string data_file(const StoreBlock& block, std::uint64_t step) const override;
    std::uint64_t steps_in_file(std::size_t) const override { return 0; }
    std::vector<std::byte> file_head(std::size_t) const override { return {}; }
    StepIndex step_index(const StoreBlock&, std::uint64_t, const StoredStep&) const override { return {}; }

  private:
    FileSchema schema_;  // without values
    std::string all_;    // of the root, but the number of steps
};

}  // namespace penstock::formats
