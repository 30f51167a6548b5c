// See encode_chunks.hpp.
#include "data/encode/encode_chunks.hpp"

#include "data/encode/gather.hpp"

namespace penstock::data {
namespace {

class ChunkEncoder final : public ItemWorker {
  public:
    explicit ChunkEncoder(const EncodeWork& work) : work_(work), gatherer_(work) {}

    std::string take(std::size_t item) override {
        const PlainChunk& chunk = work_.chunks[item];
        Encoded encoded = work_.encoder.encode(gatherer_.plain_of(chunk), chunk.room, scratch_);
        work_.sizes[item] = encoded.bytes;
        return std::move(encoded.fault);
    }

  private:
    const EncodeWork& work_;
    Gatherer gatherer_;
    Scratch scratch_;
};

}  // namespace

CoreResult encode_chunks(const EncodeWork& work, const CoreOptions& options) {
    return on_cores({work.chunks.size(), work.encoder.chunk_bytes(), work.encoder.bytes_of_thread()},
                    [&] { return std::make_unique<ChunkEncoder>(work); }, options);
}

}  // namespace penstock::data
