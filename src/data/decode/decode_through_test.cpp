// Random selections that go through pinned memory: what lands, what was touched, and who still copies when a call ends.
#include "data/decode/decode_through.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "data/decode/stored_rig.hpp"
#include "device/forwarding_device.hpp"
#include "device/host/box_host.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

constexpr std::uint64_t kWord = 4;
constexpr std::uintptr_t kOrigin = 4096;  // where boxes say that the target begins: none begins at null
constexpr auto kUntouched = std::byte{0xee}, kStale = std::byte{0xaa};

// Memory of a device. What it held is written over before it goes, so that a copy which still reads it shows.
class DeviceBytes {
  public:
    DeviceBytes(Device& device, MemoryKind kind, std::size_t bytes, std::byte value)
        : device_(device), kind_(kind), all_(static_cast<std::byte*>(device.allocate(kind, bytes)), bytes) {
        std::fill(all_.begin(), all_.end(), value);
    }
    ~DeviceBytes() { device_.release(kind_, all_.data()); }
    DeviceBytes(const DeviceBytes&) = delete;
    DeviceBytes& operator=(const DeviceBytes&) = delete;
    std::span<std::byte> bytes() const noexcept { return all_; }

  private:
    Device& device_;
    MemoryKind kind_;
    std::span<std::byte> all_;
};

struct RandomCase {
    std::uint64_t chunk_rows = 1, chunk_columns = 1, rows = 1, columns = 1;  // of words; of the chunks in the grid
    std::uint64_t row_bytes = 0;  // from row to row of the target, which may leave a gap
    bool swaps = false, by_halves = false, has_empty = false;
};

// A grid of chunks and a target that has all of their words, whose rows may be apart.
struct Selected {
    RandomCase how;
    std::vector<Bytes> plain{}, stored{};
    std::vector<StoredChunk> chunks{};
    std::vector<PlacedBox> boxes{};  // of a target at kOrigin
    std::size_t target_bytes = 0;

    explicit Selected(const RandomCase& given, std::mt19937& random) : how(given) {
        std::vector<std::size_t> order(how.rows * how.columns);
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        target_bytes = how.rows * how.chunk_rows * how.row_bytes;
        for (const std::size_t number : order) {
            plain.push_back(testing::some_bytes(chunk_bytes(), static_cast<unsigned>(number)));
            stored.push_back(testing::shuffled(plain.back(), kWord));
        }
        for (std::size_t i = 0; i < order.size(); ++i) add(i, order[i]);
        if (how.has_empty) chunks.push_back({stored.front(), 0, boxes.size(), 0});
    }

    std::uint64_t chunk_bytes() const { return how.chunk_rows * how.chunk_columns * kWord; }

    void add(std::size_t item, std::size_t number) {
        const std::size_t first = boxes.size(), width = how.chunk_columns * kWord;
        const std::size_t halves = how.by_halves && how.chunk_rows % 2 == 0 ? 2 : 1;
        for (std::size_t half = 0; half < halves; ++half) {
            const std::size_t rows = how.chunk_rows / halves, row = half * rows;
            const std::size_t at =
                (number / how.columns * how.chunk_rows + row) * how.row_bytes + number % how.columns * width;
            Box item_of;
            item_of.destination = reinterpret_cast<void*>(kOrigin + at);
            item_of.source = item_of.destination;
            item_of.item_bytes = kWord;
            item_of.swap_bytes = how.swaps ? kWord : 0;
            const std::array<BoxDimension, 2> dimensions{
                BoxDimension{rows, static_cast<std::int64_t>(how.row_bytes), static_cast<std::int64_t>(width)},
                BoxDimension{how.chunk_columns, kWord, kWord}};
            split_box(item_of, dimensions, [&](const Box& box) { boxes.push_back({box, row * width}); });
        }
        if (how.has_empty) {
            Box nothing;
            nothing.destination = reinterpret_cast<void*>(kOrigin + number % 3 * target_bytes / 2);
            nothing.dimensions = 1;
            nothing.destination_strides[0] = 1;
            boxes.push_back({nothing, 0});
        }
        chunks.push_back({stored[item], 0, first, boxes.size() - first});
    }

    std::vector<PlacedBox> placed(std::byte* target) const {
        std::vector<PlacedBox> there = boxes;
        for (PlacedBox& one : there) {
            one.box.destination = target + (reinterpret_cast<std::uintptr_t>(one.box.destination) - kOrigin);
        }
        return there;
    }

    // What the target has once the chunks that are done are there.
    Bytes expected(std::span<const std::uint8_t> done) const {
        Bytes target(target_bytes, kUntouched);
        const std::vector<PlacedBox> there = placed(target.data());
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            if (done[i] == 0) continue;
            for (std::size_t at = chunks[i].first_box; at < chunks[i].first_box + chunks[i].boxes; ++at) {
                Box box = there[at].box;
                box.source = plain[i].data() + there[at].source_bytes;
                device::copy_box_on_host(box);
            }
        }
        return target;
    }
};

RandomCase random_case(std::mt19937& random) {
    const auto one_of = [&](std::uint64_t from, std::uint64_t to) {
        return std::uniform_int_distribution<std::uint64_t>(from, to)(random);
    };
    RandomCase made{one_of(1, 40), one_of(1, 4000), one_of(1, 6), one_of(1, 4), 0,
                    one_of(0, 1) == 1, one_of(0, 1) == 1, one_of(0, 1) == 1};
    made.row_bytes = made.columns * made.chunk_columns * kWord + (one_of(0, 2) == 0 ? kWord * one_of(1, 9) : 0);
    return made;
}

struct Ended {
    CoreResult result;
    std::vector<std::uint8_t> done;
    Bytes target;
};

// The target begins at an odd address, and the staging memory does not.
Ended decode(Device& device, const Selected& from, std::size_t staging_bytes, const CoreOptions& options) {
    const DeviceBytes around(device, MemoryKind::device, from.target_bytes + 2, kUntouched);
    const std::span<std::byte> target = around.bytes().subspan(1, from.target_bytes);
    const DeviceBytes staging(device, MemoryKind::pinned, staging_bytes, kStale);
    const std::vector<PlacedBox> boxes = from.placed(target.data());
    const Filter shuffle{"shuffle", {kWord}};
    const Pipeline pipeline({&shuffle, 1}, from.chunk_bytes());
    device::KeptStreams streams(device);
    const Through through{device, staging.bytes(), streams};
    Ended ended;
    ended.done.resize(from.chunks.size());
    ended.result = decode_chunks({pipeline, from.chunks, boxes, &through, {}, ended.done}, options);
    std::fill(staging.bytes().begin(), staging.bytes().end(), kStale);  // nothing reads it any more
    ended.target.assign(target.begin(), target.end());
    EXPECT_EQ(around.bytes().front(), kUntouched);
    EXPECT_EQ(around.bytes().back(), kUntouched);
    return ended;
}

// The staging memory holds what others left in it. None of that may land, and nothing beside the boxes is touched.
TEST(DecodeThrough, of_random_selections_those_chunks_land_that_are_done_and_nothing_else) {
    const auto quick = make_host_device();
    const auto slow = make_host_device({.bandwidth_bytes_per_s = 4e9, .latency_ns = 10'000});
    std::mt19937 random(11);
    for (int turn = 0; turn < 36; ++turn) {
        Selected from(random_case(random), random);
        const std::size_t chunk = from.chunk_bytes(), all = from.target_bytes;
        const std::size_t mirror = std::max(chunk, all) + random() % 5 * 64, lanes = chunk * (1 + random() % 4);
        if (turn % 4 == 3) {
            StoredChunk& damaged = from.chunks[random() % from.chunks.size()];
            damaged.bytes = damaged.bytes.first(damaged.bytes.size() - 1);
        }
        const CoreOptions options{.threads = 1 + static_cast<unsigned>(random() % 4)};
        const Ended ended = decode(turn % 2 == 0 ? *quick : *slow, from, turn % 3 == 0 ? lanes : mirror, options);
        ASSERT_EQ(ended.target, from.expected(ended.done)) << turn;
        ASSERT_EQ(ended.result.fault.has_value(), turn % 4 == 3) << turn;
        ASSERT_EQ(ended.result.done, static_cast<std::size_t>(std::count(ended.done.begin(), ended.done.end(), 1)));
    }
}

}  // namespace
}  // namespace penstock::data
