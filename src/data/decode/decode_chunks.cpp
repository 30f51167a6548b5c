// See decode_chunks.hpp.
#include "data/decode/decode_chunks.hpp"

#include "device/host/box_host.hpp"

namespace penstock::data {
namespace {

constexpr std::uint64_t kBytesOfDecoder = 256 * kKiB;  // decoded; a thread takes about 50 us to begin

struct DecodeWork {
    const Pipeline& pipeline;
    std::span<const StoredChunk> chunks;
    std::span<const PlacedBox> boxes;
};

class ChunkDecoder final : public ItemWorker {
  public:
    explicit ChunkDecoder(const DecodeWork& work) : work_(work) {}

    std::string take(std::size_t item) override {
        const StoredChunk& chunk = work_.chunks[item];
        const std::span<const PlacedBox> boxes = work_.boxes.subspan(chunk.first_box, chunk.boxes);
        const std::uint64_t size = work_.pipeline.chunk_bytes();
        if (boxes.size() == 1 && is_whole(boxes.front())) {
            const std::span<std::byte> place(static_cast<std::byte*>(boxes.front().box.destination), size);
            return work_.pipeline.decode(chunk.bytes, chunk.skipped, place, scratch_);
        }
        if (own_ == nullptr) own_ = std::make_unique_for_overwrite<std::byte[]>(size);
        std::string fault = work_.pipeline.decode(chunk.bytes, chunk.skipped, {own_.get(), size}, scratch_);
        if (!fault.empty()) return fault;
        for (const PlacedBox& placed : boxes) {
            Box box = placed.box;
            box.source = own_.get() + placed.source_bytes;
            device::copy_box_on_host(box);
        }
        return {};
    }

  private:
    bool is_whole(const PlacedBox& placed) const noexcept {
        const Box& box = placed.box;
        return box.dimensions == 0 && box.swap_bytes == 0 && box.item_bytes == work_.pipeline.chunk_bytes();
    }

    const DecodeWork& work_;
    Scratch scratch_;
    std::unique_ptr<std::byte[]> own_;
};

}  // namespace

CoreResult decode_chunks(const Pipeline& pipeline, std::span<const StoredChunk> chunks,
                         std::span<const PlacedBox> boxes, const CoreOptions& options) {
    const DecodeWork work{pipeline, chunks, boxes};
    return on_cores({chunks.size(), pipeline.chunk_bytes(), kBytesOfDecoder},
                    [&] { return std::make_unique<ChunkDecoder>(work); }, options);
}

}  // namespace penstock::data
