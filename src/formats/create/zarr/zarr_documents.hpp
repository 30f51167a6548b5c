// ZarrDocuments: the texts and names of a new Zarr store of version 3 whose arrays grow by steps.
//
// Pure: no file is touched. Each step of an array is a chunk of its own, in a file beside the array's document. Of a
// compressed array it is a shard, whose chunks lie one behind the other and are told by the index behind them. The
// document of the root has those of all arrays in it (consolidated metadata): a reader of it sees one number of steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/create/schema.hpp"

namespace penstock::formats {

class ZarrDocuments {
  public:
    // `steps_in_chunk`: for each variable of the schema; what does not grow has any. Throws Error{invalid_argument} of
    // a type or a name that Zarr does not have.
    ZarrDocuments(const FileSchema& schema, std::vector<std::uint64_t> steps_in_chunk, const std::string& store);

    // zarr.json of an array with that many steps, and of the root.
    std::string array(std::size_t variable, std::uint64_t steps) const;
    std::string root(std::uint64_t steps) const;
    // The file of the chunk that has this step, within the store; of a variable that does not grow its only one.
    std::string chunk_file(std::size_t variable, std::uint64_t step) const;
    std::string array_file(std::size_t variable) const;  // its zarr.json, within the store
    bool is_sharded(std::size_t variable) const;
    // What lies behind the chunks of a shard that take so many bytes each.
    std::vector<std::byte> shard_index(const StoredChunks& stored) const;

  private:
    std::vector<std::uint64_t> chunk_shape(std::size_t variable) const;
    std::string codecs(const NewVariable& variable) const;

    FileSchema schema_;  // without values
    std::vector<std::uint64_t> steps_in_chunk_;
};

}  // namespace penstock::formats
