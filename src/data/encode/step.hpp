// EncodeStep: one filter, applied to a chunk.
//
// An Encoder has one for each filter. Steps know nothing of each other, of files or of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/decode/stage.hpp"

namespace penstock::data {

struct Encoded {
    std::uint64_t bytes = 0;  // from the begin of the room on
    std::string fault{};      // why it cannot be encoded; empty: it was
};

class EncodeStep {
  public:
    virtual ~EncodeStep() = default;
    // Requires: `room` has most_bytes() of the plain bytes, and does not overlap them.
    virtual Encoded apply(std::span<const std::byte> plain, std::span<std::byte> room, StageState* state) const = 0;
    virtual std::unique_ptr<StageState> make_state() const { return nullptr; }
    // Bytes that `plain` bytes become, at most.
    virtual std::uint64_t most_bytes(std::uint64_t plain) const = 0;
};

using EncodeStepPtr = std::shared_ptr<const EncodeStep>;

// The makers: one for each filter that an Encoder can apply. A level is what the filter's own library calls so. Those
// of a filter that needs a library throw Error{unsupported} with its name in a build without it.
EncodeStepPtr make_shuffling(const Values& values);         // value 0: bytes of an element
EncodeStepPtr make_fletcher32_behind(const Values& values);  // HDF5's: 4 bytes follow the data
EncodeStepPtr make_crc32c_behind(const Values& values);      // Zarr's: 4 bytes follow the data
EncodeStepPtr make_deflating(const Values& values);         // value 0: level, 1 to 12; one zlib stream
EncodeStepPtr make_gzipping(const Values& values);          // the same; one gzip member
EncodeStepPtr make_zstandard(const Values& values);         // value 0: level, 1 to 22; one frame
EncodeStepPtr make_hdf5_lz4_blocks(const Values& values);   // in blocks, as HDF5 frames them
EncodeStepPtr make_lz4_behind_size(const Values& values);   // one block behind its size, as numcodecs frames it

// Value 0 of `filter`, from 1 to `most`. Throws Error{invalid_argument}.
int level_of(const char* filter, const Values& values, int most);

}  // namespace penstock::data
