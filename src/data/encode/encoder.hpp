// Encoder: applies the filters of a dataset to a chunk. The way there of what Pipeline undoes.
//
// Immutable: any number of threads may use one, each with a Scratch of its own. Ensures: encode() writes nothing
// outside the room and the scratch; a Pipeline of the same filters gives the plain bytes again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/decode/pipeline.hpp"
#include "data/encode/step.hpp"

namespace penstock::data {

class Encoder {
  public:
    // `filters`: in the order in which they are applied, with what their makers say. Throws Error{unsupported}, which
    // names the filter and, where one is missing, the library.
    Encoder(std::span<const Filter> filters, std::uint64_t chunk_bytes);

    std::uint64_t chunk_bytes() const noexcept { return chunk_bytes_; }
    std::uint64_t most_bytes() const noexcept { return most_bytes_; }  // of an encoded chunk
    bool is_plain() const noexcept { return steps_.empty(); }            // there are no filters
    // Plain bytes that take about ten times as long as a thread takes to begin, which is 50 us.
    std::uint64_t bytes_of_thread() const noexcept { return bytes_of_thread_; }
    // Requires: `plain` has chunk_bytes(), `room` has most_bytes().
    Encoded encode(std::span<const std::byte> plain, std::span<std::byte> room, Scratch& scratch) const;

  private:
    struct NamedStep {
        std::string name;
        EncodeStepPtr step;
        std::uint64_t most_bytes;
    };
    std::vector<NamedStep> steps_;
    std::uint64_t chunk_bytes_;
    std::uint64_t most_bytes_;
    std::uint64_t bytes_of_thread_;
};

// Filters that an Encoder of this build may have.
std::vector<std::string> encoder_names();
// The libraries that may apply it; empty: Penstock does. Throws Error{unsupported} of a filter that no Encoder has.
std::string encoder_library(const Filter& filter);

}  // namespace penstock::data
