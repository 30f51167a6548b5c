// See decode_through.hpp.
#include "data/decode/decode_through.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "data/decode/decoder.hpp"
#include "device/host/box_host.hpp"
#include "os/limits.hpp"

namespace penstock::data {
namespace {

using device::KeptStreams;

constexpr std::uint64_t kUpBytes = 1 * kMiB;  // of one copy from a mirror

// The bytes [first, end) of a target, as addresses.
struct TargetRun {
    std::uintptr_t first = 0, end = 0;
};

TargetRun run_of(const PlacedBox& placed) {
    const ByteSpan span = destination_span(placed.box);
    const auto at = reinterpret_cast<std::uintptr_t>(placed.box.destination);
    return {at + static_cast<std::uintptr_t>(span.low), at + static_cast<std::uintptr_t>(span.high)};
}

TargetRun run_of(std::span<const PlacedBox> boxes) {
    TargetRun all{~std::uintptr_t{0}, 0};
    for (const PlacedBox& placed : boxes) {
        const TargetRun one = run_of(placed);
        all = {std::min(all.first, one.first), std::max(all.end, one.end)};
    }
    return all;
}

// The run of bytes that the boxes fill, if they leave none of it out. Items of a target do not overlap.
std::optional<TargetRun> filled_run(std::span<const PlacedBox> boxes) {
    std::uint64_t bytes = 0;
    for (const PlacedBox& placed : boxes) bytes += placed.box.bytes();
    const TargetRun all = run_of(boxes);
    if (bytes == 0 || all.end - all.first != bytes) return std::nullopt;
    return all;
}

// Boxes and the memory that they are decoded to, and which parts of it are whole. Any thread may call decoded().
class Mirror {
  public:
    Mirror(const ChunkWork& work, const TargetRun& target)
        : work_(work), target_(target), boxes_(work.boxes.begin(), work.boxes.end()),
          stream_(work.through->streams.borrow()), left_((target.end - target.first + kUpBytes - 1) / kUpBytes),
          is_there_(work.chunks.size()) {
        for (PlacedBox& placed : boxes_) placed.box.destination = place(placed.box.destination);
        for (const StoredChunk& chunk : work.chunks) {
            each_part(chunk, [&](std::size_t part) { left_[part].fetch_add(1, std::memory_order_relaxed); });
        }
    }

    std::span<const PlacedBox> boxes(const StoredChunk& chunk) const {
        return std::span(boxes_).subspan(chunk.first_box, chunk.boxes);
    }

    // All bytes of the chunk are in their places here. Each decrement releases them to whoever makes the last one.
    void decoded(std::size_t item) {
        is_there_[item] = 1;
        each_part(work_.chunks[item], [&](std::size_t part) {
            if (left_[part].fetch_sub(1, std::memory_order_acq_rel) == 1) copy_up(part);
        });
    }

    // Copies what parts hold that did not become whole, and waits. Requires: no thread decodes any more.
    void finish() {
        for (std::size_t item = 0; item < work_.chunks.size(); ++item) {
            bool is_up = true;
            each_part(work_.chunks[item], [&](std::size_t part) { is_up = is_up && left_[part].load() == 0; });
            if (!is_up && is_there_[item] != 0) copy_boxes(work_.chunks[item]);
        }
        stream_.finish();
    }

  private:
    void* place(const void* target) const {
        return work_.through->staging.data() + (reinterpret_cast<std::uintptr_t>(target) - target_.first);
    }

    template <typename Take>
    void each_part(const StoredChunk& chunk, const Take& take) const {
        if (chunk.boxes == 0) return;
        const TargetRun run = run_of(work_.boxes.subspan(chunk.first_box, chunk.boxes));
        if (run.end == run.first) return;
        const std::size_t last = (run.end - 1 - target_.first) / kUpBytes;
        for (std::size_t part = (run.first - target_.first) / kUpBytes; part <= last; ++part) take(part);
    }

    void copy_up(std::size_t part) {
        const std::uint64_t from = part * kUpBytes;
        const std::uint64_t bytes = std::min(kUpBytes, target_.end - target_.first - from);
        const DeviceScope current(work_.through->device);
        const std::lock_guard lock(mutex_);
        stream_->copy(CopyDirection::to_device, reinterpret_cast<void*>(target_.first + from),
                      work_.through->staging.data() + from, bytes);
    }

    void copy_boxes(const StoredChunk& chunk) {
        for (const PlacedBox& placed : work_.boxes.subspan(chunk.first_box, chunk.boxes)) {
            Box up = placed.box;
            up.source = place(up.destination);
            up.source_strides = up.destination_strides;
            up.swap_bytes = 0;
            stream_->copy_boxes({&up, 1});
        }
    }

    const ChunkWork& work_;
    const TargetRun target_;
    std::vector<PlacedBox> boxes_;  // with their destinations here
    KeptStreams::BorrowedStream stream_;
    std::mutex mutex_;                               // of the stream
    std::vector<std::atomic<std::uint32_t>> left_;   // chunks of each part that are not decoded
    std::vector<std::uint8_t> is_there_;             // each is of one chunk, so of one thread
};

class MirrorDecoder final : public Decoder {
  public:
    MirrorDecoder(const ChunkWork& work, Mirror& mirror) : Decoder(work), chunks_(work.chunks), mirror_(mirror) {}

  private:
    std::string take_chunk(std::size_t item, const StoredStream& stream, std::span<const PlacedBox>) override {
        std::string fault = decode_in_place(stream, mirror_.boxes(chunks_[item]));
        if (fault.empty()) mirror_.decoded(item);
        return fault;
    }

    std::span<const StoredChunk> chunks_;
    Mirror& mirror_;
};

CoreResult decode_mirrored(const ChunkWork& work, const TargetRun& target, const Items& items,
                           const CoreOptions& options) {
    Mirror mirror(work, target);
    const CoreResult result =
        on_cores(items, [&] { return std::make_unique<MirrorDecoder>(work, mirror); }, options);
    mirror.finish();
    return result;
}

// Where one thread decodes to, and what copies from there.
struct StagingLane {
    KeptStreams::BorrowedStream stream;
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
    const std::uint64_t count = std::clamp<std::uint64_t>(places / 2, 1, most);
    std::vector<StagingLane> lanes;
    for (std::uint64_t next = 0; lanes.size() < count;) {
        StagingLane& lane = lanes.emplace_back(StagingLane{through.streams.borrow(), {}});
        lane.places.resize(std::min<std::uint64_t>(places, 2));
        for (StagingLane::StagingPlace& place : lane.places) {
            place = {through.staging.subspan(next++ * chunk_bytes, chunk_bytes), through.device.make_event()};
        }
    }
    return lanes;
}

class LaneDecoder final : public Decoder {
  public:
    LaneDecoder(const ChunkWork& work, StagingLane& lane)
        : Decoder(work), device_(work.through->device), lane_(lane) {}

  private:
    std::string take_chunk(std::size_t, const StoredStream& stream, std::span<const PlacedBox> boxes) override {
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

CoreResult decode_by_lanes(const ChunkWork& work, const Items& items, const CoreOptions& options) {
    std::vector<StagingLane> lanes = lanes_of(*work.through, work.pipeline.chunk_bytes(), options.threads);
    std::atomic<std::size_t> next = 0;
    CoreOptions bounded = options;
    bounded.threads = static_cast<unsigned>(lanes.size());
    const auto make = [&] { return std::make_unique<LaneDecoder>(work, lanes[next++]); };
    const CoreResult result = on_cores(items, make, bounded);
    for (StagingLane& lane : lanes) lane.stream.finish();
    return result;
}

}  // namespace

CoreResult decode_through(const ChunkWork& work, const Items& items, const CoreOptions& options) {
    const DeviceScope current(work.through->device);
    const std::optional<TargetRun> target = filled_run(work.boxes);
    if (target && target->end - target->first <= work.through->staging.size()) {
        return decode_mirrored(work, *target, items, options);
    }
    return decode_by_lanes(work, items, options);
}

}  // namespace penstock::data
