// Gatherer: the plain bytes of a chunk, from elements wherever they lie. One thread uses one.
//
// A chunk that lies in one piece stays where it is; others are put together in memory of the Gatherer, which the next
// chunk takes over.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/encode/encode_chunks.hpp"

namespace penstock::data {

class Gatherer {
  public:
    // Requires: the work outlives this.
    explicit Gatherer(const EncodeWork& work) noexcept : work_(work) {}

    // Valid until the next call. Throws std::bad_alloc.
    std::span<const std::byte> plain_of(const PlainChunk& chunk);

  private:
    bool is_whole(const Box& box) const noexcept;
    void fill(std::span<std::byte> chunk) const;

    const EncodeWork& work_;
    std::unique_ptr<std::byte[]> own_;
};

}  // namespace penstock::data
