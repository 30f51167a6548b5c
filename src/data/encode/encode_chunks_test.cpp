// Many chunks at a time: elements from wherever they lie, fill values, what ends the work, and threads beside each
// other (for the thread sanitizer), in the pool of on_cores.
#include "data/encode/encode_chunks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "data/decode/stored_rig.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

constexpr std::size_t kChunks = 40, kItems = 30000, kItem = 4;
constexpr std::size_t kChunkBytes = kItems * kItem;

// Chunks that are one piece of memory each, or the first half of which is every second element of a piece.
struct Rig {
    std::vector<Filter> filters{{"shuffle", {kItem}}, {"fletcher32", {}}};
    Encoder encoder{filters, kChunkBytes};
    std::vector<Bytes> plain{};
    std::vector<PlainChunk> chunks{};
    std::vector<GatheredBox> boxes{};
    std::vector<std::uint64_t> sizes = std::vector<std::uint64_t>(kChunks);
    Bytes rooms = Bytes(kChunks * encoder.most_bytes(), std::byte{0xee});
    Bytes fill{};

    explicit Rig(bool whole, std::uint32_t swap_bytes = 0) {
        for (std::size_t i = 0; i < kChunks; ++i) {
            plain.push_back(testing::some_bytes(kChunkBytes, static_cast<unsigned>(i)));
            Box box;
            box.source = plain.back().data();
            box.item_bytes = whole ? kChunkBytes : kItem;
            box.swap_bytes = swap_bytes;
            if (!whole) {
                box.dimensions = 1;
                box.extents[0] = kItems / 2;
                box.destination_strides[0] = kItem;
                box.source_strides[0] = 2 * kItem;
            }
            boxes.push_back({box, 0});
            chunks.push_back({i, 1, !whole, std::span(rooms).subspan(i * encoder.most_bytes(), encoder.most_bytes())});
        }
    }
    CoreResult encode(const CoreOptions& options = {}) {
        return encode_chunks({encoder, chunks, boxes, fill, sizes}, options);
    }
    Bytes decoded(std::size_t i) const {
        Bytes out;
        const Bytes stored(chunks[i].room.begin(), chunks[i].room.begin() + static_cast<std::ptrdiff_t>(sizes[i]));
        EXPECT_EQ(testing::decode(Pipeline(filters, kChunkBytes), stored, out), "");
        return out;
    }
};

TEST(EncodeChunks, whole_chunks_are_encoded_by_any_number_of_threads) {
    for (const unsigned threads : {0u, 1u, 2u, 8u}) {
        Rig rig(true);
        const CoreResult result = rig.encode({.threads = threads});
        EXPECT_EQ(result.done, kChunks);
        EXPECT_FALSE(result.fault);
        for (std::size_t i = 0; i < kChunks; ++i) EXPECT_EQ(rig.decoded(i), rig.plain[i]) << i;
    }
}

TEST(EncodeChunks, a_whole_chunk_in_the_other_order_of_bytes_is_swapped_first) {
    Rig rig(true, kItem);
    EXPECT_EQ(rig.encode({.threads = 2}).done, kChunks);
    for (std::size_t i = 0; i < kChunks; ++i) {
        Bytes swapped = rig.plain[i];
        for (auto item = swapped.begin(); item != swapped.end(); item += kItem) std::reverse(item, item + kItem);
        EXPECT_EQ(rig.decoded(i), swapped) << i;
    }
}

TEST(EncodeChunks, elements_are_gathered_and_what_they_leave_is_filled) {
    for (const Bytes& fill : {Bytes{}, Bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}}) {
        Rig rig(false, kItem);
        rig.fill = fill;
        EXPECT_EQ(rig.encode({.threads = 8}).done, kChunks);
        const Bytes out = rig.decoded(3);
        for (std::size_t item = 0; item < kItems; ++item) {
            for (std::size_t k = 0; k < kItem; ++k) {
                const std::byte rest = fill.empty() ? std::byte{0} : fill[k];
                const std::byte swapped = item < kItems / 2 ? rig.plain[3][2 * item * kItem + kItem - 1 - k] : rest;
                ASSERT_EQ(out[item * kItem + k], swapped) << item;
            }
        }
    }
}

TEST(EncodeChunks, work_that_was_stopped_or_is_late_does_not_go_on) {
    Rig rig(true);
    const std::atomic<bool> stopped{true};
    EXPECT_EQ(rig.encode({.threads = 8, .stopped = &stopped}).done, 0u);
    EXPECT_EQ(rig.encode({.threads = 8, .deadline = Deadline::now()}).done, 0u);
    EXPECT_EQ(rig.rooms, Bytes(rig.rooms.size(), std::byte{0xee}));
}

TEST(EncodeChunks, several_calls_share_one_encoder_while_one_of_them_is_stopped) {
    Rig one(true), other(false);
    std::atomic<bool> stopped{false};
    std::thread ends([&] { stopped.store(true); });
    std::thread beside([&] {
        encode_chunks({other.encoder, one.chunks, one.boxes, one.fill, one.sizes}, {.threads = 4, .stopped = &stopped});
    });
    EXPECT_EQ(other.encode({.threads = 4}).done, kChunks);
    beside.join();
    ends.join();
}

}  // namespace
}  // namespace penstock::data
