// ZarrDocuments: the texts and names of a new Zarr store of version 3 whose arrays grow by steps.
//
// A chunk of an array is a file beside the array's document, and has one large step or several small ones: all of it,
// or a block where several processes write. In a compressed array it is a shard. With one step, the index with its sum
// lies behind the chunks. With several, it lies in front and has no sum: a step adds its own entries, and nothing that
// readers were shown changes. The root's document has those of all arrays in it (consolidated metadata): a reader of it
// sees one number of steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/create/stores/store_documents.hpp"

namespace penstock::formats {

class ZarrDocuments final : public StoreDocuments {
  public:
    // Throws Error{invalid_argument} of a type or a name that Zarr does not have.
    ZarrDocuments(const FileSchema& schema, const std::string& store);

    // zarr.json of an array with that many steps, and of the root.
    std::string array(std::size_t variable, std::uint64_t steps) const override;
    std::string root(std::uint64_t steps) const override;
    std::string array_file(std::size_t variable) const override;
    std::string root_file() const override;
    std::string unfinished_file() const override;
    bool has_blocks() const override { return true; }
    std::string data_file(const StoreBlock& block, std::uint64_t step) const override;
    std::uint64_t steps_in_file(std::size_t variable) const override;
    std::vector<std::byte> file_head(std::size_t variable) const override;
    bool is_sharded(std::size_t variable) const;
    StepIndex step_index(const StoreBlock& block, std::uint64_t step, const StoredStep& stored) const override;

  private:
    bool has_index_in_front(std::size_t variable) const;
    std::vector<std::uint64_t> chunks_of_block(std::size_t variable) const;
    std::vector<bool> chunks_within(const StoreBlock& block) const;
    std::vector<std::uint64_t> chunk_shape(std::size_t variable) const;
    std::string codecs(std::size_t variable) const;

    FileSchema schema_;  // without values
};

}  // namespace penstock::formats
