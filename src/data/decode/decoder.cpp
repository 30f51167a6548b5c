// See decoder.hpp.
#include "data/decode/decoder.hpp"

#include "device/host/box_host.hpp"

namespace penstock::data {
namespace {

// Streams that are in memory.
class StreamsThere final : public ChunkStreams {
  public:
    explicit StreamsThere(std::span<const StoredChunk> chunks) : chunks_(chunks) {}
    std::optional<StoredStream> of(std::size_t item, std::string&) override {
        return StoredStream{chunks_[item].bytes, 0, chunks_[item].padded};
    }

  private:
    std::span<const StoredChunk> chunks_;
};

}  // namespace

Decoder::Decoder(const ChunkWork& work)
    : work_(work), streams_(work.make_streams ? work.make_streams() : std::make_unique<StreamsThere>(work.chunks)) {}

std::string Decoder::take(std::size_t item) {
    const StoredChunk& chunk = work_.chunks[item];
    std::string fault;
    std::optional<StoredStream> stream = streams_->of(item, fault);
    if (!stream) return fault;
    stream->skipped = chunk.skipped;
    fault = take_chunk(item, *stream, work_.boxes.subspan(chunk.first_box, chunk.boxes));
    if (fault.empty() && !work_.done.empty()) work_.done[item] = 1;
    return fault;
}

std::string Decoder::decode_in_place(const StoredStream& stream, std::span<const PlacedBox> boxes) {
    if (is_whole(boxes)) {
        return decode(stream, {static_cast<std::byte*>(boxes.front().box.destination), chunk_bytes()});
    }
    const std::span<std::byte> plain = own();
    std::string fault = decode(stream, plain);
    if (!fault.empty()) return fault;
    for (const PlacedBox& placed : boxes) {
        Box box = placed.box;
        box.source = plain.data() + placed.source_bytes;
        device::copy_box_on_host(box);
    }
    return fault;
}

bool Decoder::is_whole(std::span<const PlacedBox> boxes) const noexcept {
    if (boxes.size() != 1) return false;
    const Box& box = boxes.front().box;
    return box.dimensions == 0 && box.swap_bytes == 0 && box.item_bytes == chunk_bytes();
}

std::span<std::byte> Decoder::own() {
    if (own_ == nullptr) own_ = std::make_unique_for_overwrite<std::byte[]>(chunk_bytes());
    return {own_.get(), chunk_bytes()};
}

}  // namespace penstock::data
