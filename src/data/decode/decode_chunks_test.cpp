// Many chunks at a time: what lands, what ends the work, and threads beside each other (for the thread sanitizer).
#include "data/decode/decode_chunks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "data/decode/stored_rig.hpp"
#include "device/forwarding_device.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

constexpr std::size_t kChunks = 40, kItems = 30000, kItem = 4;
constexpr std::size_t kChunkBytes = kItems * kItem;

// Chunks that went through shuffle, and deflate where the build has it.
struct Made {
    std::vector<Bytes> plain{}, stored{};

    Made() {
        for (unsigned i = 0; i < kChunks; ++i) {
            plain.push_back(testing::some_bytes(kChunkBytes, i));
            const Bytes planes = testing::shuffled(plain.back(), kItem);
            stored.push_back(testing::has_deflate() ? testing::zlib_of(planes) : planes);
        }
    }
};

// Made once: the thread sanitizer takes a second to make them.
const Made& made() {
    static const Made all;
    return all;
}

// Such chunks, of which every second element is wanted.
struct Rig {
    std::vector<Bytes> plain = made().plain, stored = made().stored;
    std::vector<StoredChunk> chunks{};
    std::vector<PlacedBox> boxes{};
    Bytes target = Bytes(kChunks * kChunkBytes, std::byte{0xee});
    std::vector<Filter> filters{{"shuffle", {kItem}}};

    explicit Rig(bool whole) {
        if (testing::has_deflate()) filters.push_back({"deflate", {}});
        for (std::size_t i = 0; i < kChunks; ++i) {
            chunks.push_back({stored[i], 0, i, 1});
            Box box;
            box.destination = target.data() + i * kChunkBytes;
            box.item_bytes = whole ? kChunkBytes : kItem;
            if (!whole) {
                box.dimensions = 1;
                box.extents[0] = kItems / 2;
                box.destination_strides[0] = kItem;
                box.source_strides[0] = 2 * kItem;
            }
            boxes.push_back({box, whole ? 0 : kItem});
        }
    }
    CoreResult decode(const CoreOptions& options = {}) {
        return decode_chunks(Pipeline(filters, kChunkBytes), chunks, boxes, options);
    }
    // To memory of the emulated device, by page-locked memory of so many chunks; then that memory is the target.
    CoreResult decode_through(Device& device, std::size_t places, const CoreOptions& options = {}) {
        const auto released = [&device](MemoryKind kind) {
            return [&device, kind](std::byte* memory) { device.release(kind, memory); };
        };
        const auto taken = [&device](MemoryKind kind, std::size_t bytes) {
            return static_cast<std::byte*>(device.allocate(kind, bytes));
        };
        const std::size_t room = std::max<std::size_t>(1, places * kChunkBytes);
        const std::unique_ptr<std::byte, std::function<void(std::byte*)>> there(
            taken(MemoryKind::device, target.size()), released(MemoryKind::device));
        const std::unique_ptr<std::byte, std::function<void(std::byte*)>> staging(
            taken(MemoryKind::pinned, room), released(MemoryKind::pinned));
        std::memcpy(there.get(), target.data(), target.size());
        std::vector<PlacedBox> moved = boxes;
        for (PlacedBox& placed : moved) {
            placed.box.destination = there.get() + (static_cast<std::byte*>(placed.box.destination) - target.data());
        }
        const Pipeline pipeline(filters, kChunkBytes);
        device::KeptStreams streams(device);
        const Through through{device, {staging.get(), places * kChunkBytes}, streams};
        const CoreResult result = decode_chunks({pipeline, chunks, moved, &through}, options);
        std::memcpy(target.data(), there.get(), target.size());
        return result;
    }
};

TEST(DecodeChunks, whole_chunks_land_where_they_are_wanted_with_any_number_of_threads) {
    for (const unsigned threads : {0u, 1u, 2u, 8u}) {
        Rig rig(true);
        const CoreResult result = rig.decode({.threads = threads});
        EXPECT_EQ(result.done, kChunks);
        EXPECT_FALSE(result.fault);
        for (std::size_t i = 0; i < kChunks; ++i) {
            EXPECT_EQ(std::memcmp(rig.target.data() + i * kChunkBytes, rig.plain[i].data(), kChunkBytes), 0) << i;
        }
    }
}

TEST(DecodeChunks, boxes_take_what_is_wanted_and_touch_nothing_else) {
    Rig rig(false);
    EXPECT_EQ(rig.decode({.threads = 8}).done, kChunks);
    for (std::size_t i = 0; i < kChunks; ++i) {
        for (std::size_t item = 0; item < kItems / 2; ++item) {
            ASSERT_EQ(std::memcmp(rig.target.data() + i * kChunkBytes + item * kItem,
                                  rig.plain[i].data() + (2 * item + 1) * kItem, kItem),
                      0);
        }
        for (std::size_t at = kChunkBytes / 2; at < kChunkBytes; ++at) {
            ASSERT_EQ(rig.target[i * kChunkBytes + at], std::byte{0xee});
        }
    }
}

// The device is slow, so that a thread which did not wait for its place would write over what is still to be copied.
TEST(DecodeChunks, through_a_device_the_same_bytes_land_with_any_number_of_places) {
    const auto device = make_host_device({.bandwidth_bytes_per_s = 2e9, .latency_ns = 20'000});
    for (const bool whole : {true, false}) {
        Rig expected(whole);
        ASSERT_EQ(expected.decode().done, kChunks);
        for (const std::size_t places : {1u, 2u, 3u, 8u, 64u}) {
            Rig rig(whole);
            const CoreResult result = rig.decode_through(*device, places, {.threads = 4});
            EXPECT_EQ(result.done, kChunks);
            EXPECT_FALSE(result.fault);
            EXPECT_EQ(rig.target, expected.target) << places;
        }
    }
}

TEST(DecodeChunks, through_a_device_words_are_turned_and_rows_fall_where_they_are_wanted) {
    const auto device = make_host_device();
    Rig rig(false), expected(false);
    for (Rig* one : {&rig, &expected}) {
        for (PlacedBox& placed : one->boxes) {  // in other places than one after the other
            placed.box.swap_bytes = kItem;
            placed.box.destination_strides[0] = 2 * kItem;
        }
    }
    ASSERT_EQ(expected.decode().done, kChunks);
    EXPECT_EQ(rig.decode_through(*device, 4).done, kChunks);
    EXPECT_EQ(rig.target, expected.target);
}

// Halves of chunks that lie one after the other, so that staging memory as large as they are is their mirror.
TEST(DecodeChunks, through_a_mirror_selected_words_land_turned) {
    const auto device = make_host_device({.bandwidth_bytes_per_s = 2e9, .latency_ns = 20'000});
    Rig rig(false), expected(false);
    for (Rig* one : {&rig, &expected}) {
        for (std::size_t i = 0; i < kChunks; ++i) {
            one->boxes[i].box.destination = one->target.data() + (kChunks - 1 - i) * (kChunkBytes / 2);
            one->boxes[i].box.swap_bytes = kItem;
        }
    }
    ASSERT_EQ(expected.decode().done, kChunks);
    EXPECT_EQ(rig.decode_through(*device, kChunks / 2, {.threads = 4}).done, kChunks);
    EXPECT_EQ(rig.target, expected.target);
}

// So few bytes that the emulated device copies them at once: nothing that is decoded later is in the copy.
TEST(DecodeChunks, through_a_mirror_bytes_go_up_when_the_last_chunk_is_there) {
    constexpr std::size_t kTaken = 256;
    const auto device = make_host_device();
    Rig rig(false), expected(false);
    for (Rig* one : {&rig, &expected}) {
        for (std::size_t i = 0; i < kChunks; ++i) {
            one->boxes[i].box.destination = one->target.data() + i * kTaken * kItem;
            one->boxes[i].box.extents[0] = kTaken;
        }
    }
    ASSERT_EQ(expected.decode().done, kChunks);
    EXPECT_EQ(rig.decode_through(*device, 1, {.threads = 1}).done, kChunks);
    EXPECT_EQ(rig.target, expected.target);
}

TEST(DecodeChunks, through_a_mirror_one_stream_copies_for_all_threads) {
    class CountingDevice final : public device::test::ForwardingDevice {
      public:
        std::unique_ptr<Stream> make_stream() override {
            ++made;
            return ForwardingDevice::make_stream();
        }
        int made = 0;
    };
    for (const auto& [places, streams] : {std::pair{kChunks, 1}, std::pair{kChunks - 1, 4}}) {
        CountingDevice device;
        Rig rig(true);
        EXPECT_EQ(rig.decode_through(device, places, {.threads = 4}).done, kChunks);
        EXPECT_EQ(device.made, streams) << places;
    }
}

// One thread takes the chunks in their order, so it comes to no more than the damaged one.
TEST(DecodeChunks, through_a_mirror_chunks_before_a_damaged_one_land_and_nothing_else) {
    const auto device = make_host_device();
    Rig rig(true);
    rig.chunks[12].bytes = rig.chunks[12].bytes.first(rig.chunks[12].bytes.size() / 2);
    const CoreResult result = rig.decode_through(*device, kChunks, {.threads = 1});
    ASSERT_TRUE(result.fault);
    EXPECT_EQ(result.fault->first, 12u);
    for (std::size_t i = 0; i < 12; ++i) {
        EXPECT_EQ(std::memcmp(rig.target.data() + i * kChunkBytes, rig.plain[i].data(), kChunkBytes), 0) << i;
    }
    const auto rest = rig.target.begin() + 12 * kChunkBytes;
    EXPECT_TRUE(std::all_of(rest, rig.target.end(), [](std::byte one) { return one == std::byte{0xee}; }));
}

TEST(DecodeChunks, through_a_device_no_memory_and_damage_are_told) {
    const auto device = make_host_device();
    Rig rig(true);
    EXPECT_THROW(rig.decode_through(*device, 0), Error);
    rig.chunks[3].bytes = rig.chunks[3].bytes.first(rig.chunks[3].bytes.size() / 2);
    const CoreResult result = rig.decode_through(*device, 4);
    ASSERT_TRUE(result.fault);
    EXPECT_EQ(result.fault->first, 3u);
}

TEST(DecodeChunks, a_damaged_chunk_ends_the_work_and_is_told) {
    Rig rig(true);
    rig.stored[7].resize(kChunkBytes / 2);
    rig.chunks[7].bytes = rig.stored[7];
    for (const unsigned threads : {1u, 8u}) {
        const CoreResult result = rig.decode({.threads = threads});
        ASSERT_TRUE(result.fault);
        EXPECT_EQ(result.fault->first, 7u);
        EXPECT_FALSE(result.fault->second.empty());
        EXPECT_LT(result.done, kChunks);
    }
}

TEST(DecodeChunks, work_that_was_stopped_or_is_late_does_not_go_on) {
    Rig rig(true);
    const std::atomic<bool> stopped{true};
    EXPECT_EQ(rig.decode({.threads = 8, .stopped = &stopped}).done, 0u);
    EXPECT_EQ(rig.decode({.threads = 8, .deadline = Deadline::now()}).done, 0u);
    EXPECT_EQ(rig.target, Bytes(rig.target.size(), std::byte{0xee}));
}

TEST(DecodeChunks, several_calls_share_one_pipeline_while_one_of_them_is_stopped) {
    Rig one(true), other(false);
    const Pipeline pipeline(one.filters, kChunkBytes);
    std::atomic<bool> stopped{false};
    std::thread ends([&] { stopped.store(true); });
    std::thread beside([&] { decode_chunks(pipeline, one.chunks, one.boxes, {.threads = 4, .stopped = &stopped}); });
    EXPECT_EQ(decode_chunks(pipeline, other.chunks, other.boxes, {.threads = 4}).done, kChunks);
    beside.join();
    ends.join();
}

}  // namespace
}  // namespace penstock::data
