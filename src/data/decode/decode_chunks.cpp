// See decode_chunks.hpp.
#include "data/decode/decode_chunks.hpp"

#include "data/decode/decode_through.hpp"
#include "data/decode/decoder.hpp"

namespace penstock::data {
namespace {

constexpr std::uint64_t kBytesOfDecoder = 256 * kKiB;  // decoded; a thread takes about 50 us to begin

class HostDecoder final : public Decoder {
  public:
    using Decoder::Decoder;

  private:
    std::string take_chunk(std::size_t, const StoredStream& stream, std::span<const PlacedBox> boxes) override {
        return decode_in_place(stream, boxes);
    }
};

}  // namespace

CoreResult decode_chunks(const ChunkWork& work, const CoreOptions& options) {
    const Items items{work.chunks.size(), work.pipeline.chunk_bytes(), kBytesOfDecoder, work.ended};
    if (work.through != nullptr) return decode_through(work, items, options);
    return on_cores(items, [&] { return std::make_unique<HostDecoder>(work); }, options);
}

CoreResult decode_chunks(const Pipeline& pipeline, std::span<const StoredChunk> chunks,
                         std::span<const PlacedBox> boxes, const CoreOptions& options) {
    return decode_chunks({pipeline, chunks, boxes}, options);
}

}  // namespace penstock::data
