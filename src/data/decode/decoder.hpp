// Decoder: decodes the chunks of one call, in one thread. Where the bytes go is up to the class that derives from it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "data/decode/decode_chunks.hpp"

namespace penstock::data {

class Decoder : public ItemWorker {
  public:
    explicit Decoder(const ChunkWork& work);

    std::string take(std::size_t item) final;

  protected:
    virtual std::string take_chunk(std::size_t item, const StoredStream& stream, std::span<const PlacedBox> boxes) = 0;
    std::string decode(const StoredStream& stream, std::span<std::byte> to) {
        return work_.pipeline.decode(stream, to, scratch_);
    }
    // Decodes a chunk to where its boxes say. Requires: the host reaches their destinations.
    std::string decode_in_place(const StoredStream& stream, std::span<const PlacedBox> boxes);
    std::uint64_t chunk_bytes() const noexcept { return work_.pipeline.chunk_bytes(); }
    // One box, of the whole chunk as it is.
    bool is_whole(std::span<const PlacedBox> boxes) const noexcept;
    // Memory of this thread for a chunk.
    std::span<std::byte> own();

  private:
    const ChunkWork& work_;
    const std::unique_ptr<ChunkStreams> streams_;
    Scratch scratch_;
    std::unique_ptr<std::byte[]> own_;
};

}  // namespace penstock::data
