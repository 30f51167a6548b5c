// See decode_chunks.hpp.
#include "data/decode/decode_chunks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "device/host/box_host.hpp"
#include "os/limits.hpp"

namespace penstock::data {
namespace {

constexpr std::uint64_t kBytesOfDecoder = 256 * kKiB;  // decoded; a thread takes about 50 us to begin

// Streams that are in memory.
class StreamsThere final : public ChunkStreams {
  public:
    explicit StreamsThere(std::span<const StoredChunk> chunks) : chunks_(chunks) {}
    StoredStream of(std::size_t item, std::string&) override {
        return {chunks_[item].bytes, 0, chunks_[item].padded};
    }

  private:
    std::span<const StoredChunk> chunks_;
};

// Decodes chunks and tells which are done; how they get to their places is another's.
class Decoder : public ItemWorker {
  public:
    explicit Decoder(const ChunkWork& work)
        : work_(work),
          streams_(work.make_streams ? work.make_streams() : std::make_unique<StreamsThere>(work.chunks)) {}

    std::string take(std::size_t item) final {
        const StoredChunk& chunk = work_.chunks[item];
        std::string fault;
        StoredStream stream = streams_->of(item, fault);
        if (!fault.empty()) return fault;
        stream.skipped = chunk.skipped;
        fault = take_chunk(stream, work_.boxes.subspan(chunk.first_box, chunk.boxes));
        if (fault.empty() && !work_.done.empty()) work_.done[item] = 1;
        return fault;
    }

  protected:
    virtual std::string take_chunk(const StoredStream& stream, std::span<const PlacedBox> boxes) = 0;
    std::string decode(const StoredStream& stream, std::span<std::byte> to) {
        return work_.pipeline.decode(stream, to, scratch_);
    }
    std::uint64_t chunk_bytes() const noexcept { return work_.pipeline.chunk_bytes(); }
    // One box, of the whole chunk as it is.
    bool is_whole(std::span<const PlacedBox> boxes) const noexcept {
        if (boxes.size() != 1) return false;
        const Box& box = boxes.front().box;
        return box.dimensions == 0 && box.swap_bytes == 0 && box.item_bytes == chunk_bytes();
    }
    // Memory of this thread for a chunk.
    std::span<std::byte> own() {
        if (own_ == nullptr) own_ = std::make_unique_for_overwrite<std::byte[]>(chunk_bytes());
        return {own_.get(), chunk_bytes()};
    }

  private:
    const ChunkWork& work_;
    const std::unique_ptr<ChunkStreams> streams_;
    Scratch scratch_;
    std::unique_ptr<std::byte[]> own_;
};

class HostDecoder final : public Decoder {
  public:
    using Decoder::Decoder;

  private:
    std::string take_chunk(const StoredStream& stream, std::span<const PlacedBox> boxes) override {
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
};

// Where one thread decodes to, and what copies from there.
struct StagingLane {
    std::unique_ptr<Stream> stream;
    struct StagingPlace {
        std::span<std::byte> memory{};
        std::unique_ptr<Event> copied{};
    };
    std::vector<StagingPlace> places{};
};

// A lane for each thread that has two places of its own, at most `threads`; one of one place, where there is no more.
std::vector<StagingLane> lanes_of(const Through& through, std::uint64_t chunk_bytes, unsigned threads) {
    const std::uint64_t places = through.staging.size() / chunk_bytes;
    if (places == 0) {
        throw Error(ErrorCode::invalid_argument, "decode chunks", "the staging memory is smaller than a chunk",
                    "give " + std::to_string(chunk_bytes) + " bytes or more");
    }
    const std::uint64_t most = threads != 0 ? threads : std::max(1u, os::allowed_cpus());
    std::vector<StagingLane> lanes(std::clamp<std::uint64_t>(places / 2, 1, most));
    std::uint64_t next = 0;
    for (StagingLane& lane : lanes) {
        lane.stream = through.device.make_stream();
        lane.places.resize(std::min<std::uint64_t>(places, 2));
        for (StagingLane::StagingPlace& place : lane.places) {
            place = {through.staging.subspan(next++ * chunk_bytes, chunk_bytes), through.device.make_event()};
        }
    }
    return lanes;
}

class ThroughDecoder final : public Decoder {
  public:
    ThroughDecoder(const ChunkWork& work, StagingLane& lane)
        : Decoder(work), device_(work.through->device), lane_(lane) {}

  private:
    std::string take_chunk(const StoredStream& stream, std::span<const PlacedBox> boxes) override {
        const bool whole = is_whole(boxes);
        const std::span<std::byte> plain = whole ? next_place() : own();
        std::string fault = decode(stream, plain);
        if (!fault.empty()) return fault;
        const DeviceScope current(device_);
        if (whole) {
            lane_.stream->copy(CopyDirection::to_device, boxes.front().box.destination, plain.data(), plain.size());
            lane_.stream->record(*place_->copied);
        } else {
            for (const PlacedBox& placed : boxes) copy_wanted(plain, placed);
        }
        return fault;
    }

    std::span<std::byte> next_place() {
        place_ = &lane_.places[turn_++ % lane_.places.size()];
        place_->copied->wait(Deadline::never());
        return place_->memory;
    }

    // The host takes out what is wanted, so that nothing else crosses the link and no GPU reads items that lie apart.
    void copy_wanted(std::span<const std::byte> plain, const PlacedBox& placed) {
        Box out = placed.box, up = placed.box;
        auto stride = static_cast<std::int64_t>(out.item_bytes);
        for (std::uint32_t axis = out.dimensions; axis-- > 0;) {
            out.destination_strides[axis] = up.source_strides[axis] = stride;
            stride *= static_cast<std::int64_t>(out.extents[axis]);
        }
        const std::span<std::byte> place = next_place();
        out.source = plain.data() + placed.source_bytes;
        up.source = out.destination = place.data();
        up.swap_bytes = 0;
        device::copy_box_on_host(out);
        lane_.stream->copy_boxes({&up, 1});
        lane_.stream->record(*place_->copied);
    }

    Device& device_;
    StagingLane& lane_;
    StagingLane::StagingPlace* place_ = nullptr;  // the last one
    std::size_t turn_ = 0;
};

CoreResult decode_through(const ChunkWork& work, const Items& items, const CoreOptions& options) {
    const DeviceScope current(work.through->device);
    std::vector<StagingLane> lanes = lanes_of(*work.through, work.pipeline.chunk_bytes(), options.threads);
    std::atomic<std::size_t> next = 0;
    CoreOptions bounded = options;
    bounded.threads = static_cast<unsigned>(lanes.size());
    const auto make = [&] { return std::make_unique<ThroughDecoder>(work, lanes[next++]); };
    const CoreResult result = on_cores(items, make, bounded);
    for (StagingLane& lane : lanes) lane.stream->synchronize();
    return result;
}

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
