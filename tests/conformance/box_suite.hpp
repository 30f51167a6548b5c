// The part of the Device kit for boxes: strided copies, swaps and fills, compared with a reference of plain loops.
// Bytes between and around the items are compared too. Include it beside device_suite.hpp.
#pragma once

#include <algorithm>

#include "conformance/box_reference.hpp"
#include "conformance/device_suite.hpp"
#include "support/sanitized.hpp"

namespace penstock::conformance {

class BoxSuite : public DeviceSuite {
  protected:
    // Moves the boxes on the device and by the reference, and compares all bytes.
    void expect_same(const std::vector<ReferenceBox>& boxes, std::uint64_t to_bytes, std::uint64_t from_bytes,
                     const std::string& what) {
        const auto source = random_bytes(from_bytes, 11);
        std::vector<unsigned char> expected(to_bytes, 0xA5);
        const Memory to = memory(MemoryKind::device, to_bytes), from = memory(MemoryKind::device, from_bytes);
        to_device(from.data(), source);
        to_device(to.data(), expected);
        std::vector<Box> placed;
        for (const ReferenceBox& one : boxes) {
            placed.push_back(one.at(to.data(), from.data()));
            one.move(expected, source);
        }
        stream_->copy_boxes(placed);
        std::fill(placed.begin(), placed.end(), Box{});  // the caller may reuse them after the call
        const auto got = to_host(to.data(), to_bytes);
        if (got != expected) {
            const auto differs = std::mismatch(got.begin(), got.end(), expected.begin());
            FAIL() << what << ": byte " << differs.first - got.begin() << " of " << to_bytes << " is "
                   << int{*differs.first} << ", not " << int{*differs.second};
        }
        ASSERT_EQ(to_host(from.data(), from_bytes) == source, true) << what << ": the source changed";
    }
};

TEST_P(BoxSuite, random_boxes_move_as_the_reference_moves_them) {
    std::mt19937_64 random(3);
    const BoxTrial trials[] = {{8, 5, 6, 1, 0, 40},      {64, 4, 4, 2, 0, 40},    {64, 9, 3, 4, 0, 40},
                               {512, 6, 3, 8, 0, 20},    {2048, 12, 2, 16, 0, 9}, {3000, 40, 1, 1, 0, 9},
                               {900, 9, 2, 1, 0, 30},    {1, 5000, 1, 1, 0, 5},   {100000, 2, 2, 4, 0, 3},
                               {300000, 2, 1, 1, 0, 3},  {4, 70, 2, 4, 0, 9},     {16, 700, 1, 16, 0, 9}};
    for (const BoxTrial& trial : trials) {
        for (int round = 0; round < 4; ++round) {
            std::uint64_t to_bytes = 0, from_bytes = 0;
            const auto boxes = random_boxes(random, trial, to_bytes, from_bytes);
            expect_same(boxes, to_bytes, from_bytes, testing::PrintToString(trial));
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(BoxSuite, words_of_every_size_are_swapped_at_any_alignment) {
    std::mt19937_64 random(5);
    for (const std::uint32_t word : {2u, 4u, 8u, 16u}) {
        for (const std::uint64_t alignment : {1u, 2u, 4u, 8u, 16u}) {
            const BoxTrial trials[] = {{word, 6, 4, alignment, word, 20},
                                       {64 * word, 6, 3, alignment, word, 10},
                                       {4096 * word, 3, 1, alignment, word, 3}};
            for (BoxTrial trial : trials) {
                std::uint64_t to_bytes = 0, from_bytes = 0;
                trial.largest_item = std::max<std::uint64_t>(trial.largest_item, alignment);
                auto boxes = random_boxes(random, trial, to_bytes, from_bytes);
                expect_same(boxes, to_bytes, from_bytes, testing::PrintToString(trial));
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST_P(BoxSuite, bytes_are_swapped_in_place) {
    for (const std::uint32_t word : {2u, 4u, 8u, 16u}) {
        for (const std::uint64_t skew : {std::uint64_t{0}, std::uint64_t{word}, std::uint64_t{1}, std::uint64_t{7}}) {
            const std::uint64_t count = test::kSanitized ? 10'003 : 100'003, bytes = count * word;
            const Memory block = memory(MemoryKind::device, bytes + 64);
            auto expected = random_bytes(block.bytes(), word);
            to_device(block.data(), expected);
            Box box{.destination = block.data() + skew, .source = block.data() + skew, .item_bytes = word,
                    .dimensions = 1, .swap_bytes = word};
            box.extents[0] = count;
            box.destination_strides[0] = box.source_strides[0] = word;
            stream_->copy_boxes(std::vector<Box>{box});
            for (std::uint64_t i = 0; i < count; ++i) {
                const auto start = expected.begin() + static_cast<std::ptrdiff_t>(skew + i * word);
                std::reverse(start, start + word);
            }
            EXPECT_EQ(to_host(block.data(), block.bytes()) == expected, true) << word << " at " << skew;
            box.extents[0] = count / 3;  // every third word, still in place
            box.destination_strides[0] = box.source_strides[0] = 3 * word;
            stream_->copy_boxes(std::vector<Box>{box});
            for (std::uint64_t i = 0; i < count / 3; ++i) {
                const auto start = expected.begin() + static_cast<std::ptrdiff_t>(skew + 3 * i * word);
                std::reverse(start, start + word);
            }
            EXPECT_EQ(to_host(block.data(), block.bytes()) == expected, true) << word << " at " << skew << ", strided";
        }
    }
}

// Rows of every length around vectors and segments, at every alignment of both sides.
TEST_P(BoxSuite, rows_are_moved_at_any_alignment_of_both_sides) {
    for (const std::uint64_t row : {1u, 3u, 15u, 16u, 31u, 127u, 128u, 130u, 257u, 1000u, 4099u, 20000u}) {
        std::vector<ReferenceBox> boxes;
        std::uint64_t to_bytes = 64, from_bytes = 64;
        for (std::uint64_t to = 0; to < 16; ++to) {
            for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4}, to}) {
                ReferenceBox one;
                one.box.item_bytes = row;
                one.box.dimensions = 1;
                one.box.extents[0] = 3;
                one.box.destination_strides[0] = static_cast<std::int64_t>(row + to);
                one.box.source_strides[0] = static_cast<std::int64_t>(row + from);
                one.to = to_bytes + to;
                one.from = from_bytes + from;
                to_bytes = align_up(one.to + 3 * (row + to), 16);
                from_bytes = align_up(one.from + 3 * (row + from), 16);
                boxes.push_back(one);
            }
        }
        expect_same(boxes, to_bytes, from_bytes, "rows of " + std::to_string(row));
        if (HasFatalFailure()) return;
    }
}

TEST_P(BoxSuite, ten_thousand_small_boxes_arrive) {
    std::mt19937_64 random(9);
    std::uint64_t to_bytes = 0, from_bytes = 0;
    const auto boxes = random_boxes(random, {24, 4, 2, 1, 0, 10'000}, to_bytes, from_bytes);
    expect_same(boxes, to_bytes, from_bytes, "10 000 boxes");
}

TEST_P(BoxSuite, work_before_and_after_boxes_keeps_its_order) {
    const std::uint64_t bytes = 1 << 20;
    const Memory first = memory(MemoryKind::device, bytes), second = memory(MemoryKind::device, bytes);
    for (int round = 0; round < test::some_of(20); ++round) {
        stream_->fill(first.data(), bytes, round);
        Box box{.destination = second.data(), .source = first.data(), .item_bytes = 1, .dimensions = 2};
        box.extents = {1024, 1024};
        box.destination_strides = {1, 1024};
        box.source_strides = {1024, 1};
        stream_->copy_boxes(std::vector<Box>{box});
        stream_->fill(first.data(), bytes, 255);  // must not overtake the boxes
        const auto got = to_host(second.data(), bytes);
        ASSERT_EQ(std::count(got.begin(), got.end(), round), static_cast<std::ptrdiff_t>(bytes));
    }
}

TEST_P(BoxSuite, pinned_memory_is_a_side_too) {
    const Memory block = memory(MemoryKind::device, 4096), pinned = memory(MemoryKind::pinned, 4096);
    const auto data = random_bytes(4096, 1);
    std::memcpy(pinned.data(), data.data(), 4096);
    Box box{.destination = block.data(), .source = pinned.data() + 4094, .item_bytes = 2, .dimensions = 1};
    box.extents[0] = 2048;
    box.destination_strides[0] = 2;
    box.source_strides[0] = -2;
    stream_->copy_boxes(std::vector<Box>{box});
    auto got = to_host(block.data(), 4096);
    for (std::size_t i = 0; i < 2048; ++i) {
        ASSERT_TRUE(std::equal(got.begin() + 2 * static_cast<long>(i), got.begin() + 2 * static_cast<long>(i) + 2,
                               data.begin() + 4094 - 2 * static_cast<long>(i)));
    }
}

TEST_P(BoxSuite, fills_repeat_their_item_and_touch_nothing_else) {
    std::mt19937_64 random(13);
    for (const std::uint64_t item_bytes : {1u, 2u, 3u, 4u, 8u, 12u, 16u, 100u, 4096u, 5000u, 65536u}) {
        for (int round = 0; round < 3; ++round) {
            const std::uint64_t step = round == 0 ? 16 : 1;
            std::vector<ReferenceBox> boxes(3);
            std::uint64_t bytes = round;
            for (ReferenceBox& one : boxes) {
                one.box.item_bytes = item_bytes;
                one.box.dimensions = 1 + static_cast<std::uint32_t>(random() % 3);
                for (std::uint32_t d = 0; d < one.box.dimensions; ++d) {
                    one.box.extents[d] = 1 + random() % (item_bytes > 4000 ? 5 : 40);
                }
                const StridesExtent span = random_strides(random, one.box, step, one.box.destination_strides);
                one.to = bytes + span.first;
                bytes += span.bytes + random() % 3;
            }
            bytes += 64;
            const auto item = random_bytes(item_bytes, random());
            std::vector<unsigned char> expected(bytes, 0x5A);
            const Memory block = memory(MemoryKind::device, bytes);
            to_device(block.data(), expected);
            std::vector<Box> placed;
            for (const ReferenceBox& one : boxes) {
                one.move(expected, item);
                placed.push_back(one.at(block.data(), nullptr));
            }
            auto copy = item;
            stream_->fill_boxes(placed, std::as_bytes(std::span(copy)));
            std::fill(copy.begin(), copy.end(), 0xEE);  // the caller may reuse it after the call
            ASSERT_EQ(to_host(block.data(), bytes) == expected, true) << item_bytes << " round " << round;
        }
    }
}

TEST_P(BoxSuite, many_fills_in_flight_keep_their_own_items) {
    const std::uint64_t bytes = 64 * 1024;
    const Memory block = memory(MemoryKind::device, 64 * bytes);
    for (std::uint64_t i = 0; i < 64; ++i) {
        Box box{.destination = block.data() + i * bytes, .item_bytes = 8, .dimensions = 1};
        box.extents[0] = bytes / 8;
        box.destination_strides[0] = 8;
        const std::uint64_t item = 0x0101010101010101ull * i;
        stream_->fill_boxes(std::vector<Box>{box}, std::as_bytes(std::span(&item, 1)));
    }
    const auto got = to_host(block.data(), block.bytes());
    for (std::uint64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i / bytes) << i;
}

TEST_P(BoxSuite, nothing_to_do_does_nothing) {
    const Memory block = memory(MemoryKind::device, 4096);
    stream_->copy_boxes({});
    const std::byte item{1};
    stream_->fill_boxes({}, std::span(&item, 1));
    Box box{.destination = block.data(), .source = block.data(), .item_bytes = 1, .dimensions = 2};
    box.extents = {1ull << 40, 0};
    stream_->copy_boxes(std::vector<Box>(3, box));
    stream_->fill_boxes(std::vector<Box>(3, box), std::span(&item, 1));
    stream_->synchronize();
}

TEST_P(BoxSuite, boxes_that_make_no_sense_are_refused_before_anything_moves) {
    const Memory block = memory(MemoryKind::device, 4096);
    stream_->fill(block.data(), 4096, 3);
    Box good{.destination = block.data(), .source = block.data() + 2048, .item_bytes = 16};
    const std::byte items[16] = {};
    std::vector<Box> wrong(6, good);
    wrong[0].item_bytes = 0;
    wrong[1].swap_bytes = 5;
    wrong[2].swap_bytes = 32;
    wrong[3].dimensions = 7;
    wrong[4].destination = nullptr;
    wrong[5].dimensions = 1;
    wrong[5].extents[0] = 2;
    wrong[5].destination_strides[0] = 8;  // overlaps itself
    for (const Box& box : wrong) {
        EXPECT_THROW(stream_->copy_boxes(std::vector<Box>{good, box}), Error);
        EXPECT_THROW(stream_->fill_boxes(std::vector<Box>{good, box}, items), Error);
    }
    EXPECT_THROW(stream_->fill_boxes(std::vector<Box>{good}, std::span(items, 8)), Error) << "another size";
    EXPECT_THROW(stream_->fill_boxes(std::vector<Box>{good}, {}), Error);
    EXPECT_THROW(stream_->fill_boxes({}, std::vector<std::byte>(kFillItemBytes + 1)), Error);
    const auto got = to_host(block.data(), 4096);
    EXPECT_EQ(std::count(got.begin(), got.end(), 3), 4096);
}

// A large box in many units of work, if there is room: 1 GiB on a GPU, less on the host.
TEST_P(BoxSuite, a_large_box_arrives_whole) {
    const DeviceInfo info = device_->info();
    const std::uint64_t bytes = info.emulated ? 8 * kMiB : kGiB;
    if (info.free_bytes < 3 * bytes) GTEST_SKIP() << info.free_bytes << " bytes are free";
    const Memory from = memory(MemoryKind::device, bytes), to = memory(MemoryKind::device, bytes);
    const std::uint64_t rows = bytes / 4096, columns = 16;
    stream_->stamp(from.data(), bytes, 0, 1);
    stream_->fill(to.data(), bytes, 0);
    Box box{.destination = to.data(), .source = from.data(), .item_bytes = 256, .dimensions = 2};
    box.extents = {rows, columns};
    box.source_strides = {4096, 256};
    box.destination_strides = {256, static_cast<std::int64_t>(rows * 256)};  // 16 slabs, each of one column
    stream_->copy_boxes(std::vector<Box>{box});
    EXPECT_GT(stream_->verify_stamp(to.data(), bytes, 0, 1).bad_bytes, bytes / 2) << "moved nothing";
    std::swap(box.destination_strides, box.source_strides);
    box.destination = from.data();
    box.source = to.data();
    stream_->fill(from.data(), bytes, 0);
    stream_->copy_boxes(std::vector<Box>{box});
    EXPECT_EQ(stream_->verify_stamp(from.data(), bytes, 0, 1).bad_bytes, 0u);
    Box swap{.destination = from.data(), .source = from.data(), .item_bytes = bytes, .swap_bytes = 8};
    stream_->copy_boxes(std::vector<Box>{swap});
    EXPECT_GT(stream_->verify_stamp(from.data(), bytes, 0, 1).bad_bytes, bytes / 2) << "swapped nothing";
    stream_->copy_boxes(std::vector<Box>{swap});
    EXPECT_EQ(stream_->verify_stamp(from.data(), bytes, 0, 1).bad_bytes, 0u);
}

TEST_P(BoxSuite, streams_of_others_are_waited_for) {
    device_->synchronize_native(0);
    device_->synchronize_native(reinterpret_cast<std::uintptr_t>(stream_->native_handle()));
    if (device_->info().emulated) {
        EXPECT_THROW(device_->synchronize_native(77), Error);
        EXPECT_THROW(stream_->follow(77), Error);
        EXPECT_THROW(stream_->lead(77), Error);
    } else {
        device_->synchronize_native(1);  // the default stream, as DLPack numbers it
    }
}

// Two streams write the same bytes in turn, and nothing but follow() and lead() orders them.
TEST_P(BoxSuite, streams_of_others_are_followed_and_led) {
    const std::unique_ptr<Stream> other = device_->make_stream();
    const auto native = reinterpret_cast<std::uintptr_t>(other->native_handle());
    const std::uint64_t bytes = (device_->info().emulated ? 8 : 256) * kMiB;
    const Memory from = memory(MemoryKind::device, bytes), to = memory(MemoryKind::device, bytes);
    Box box{.destination = to.data(), .source = from.data(), .item_bytes = 1, .dimensions = 1};
    box.extents[0] = bytes;
    box.destination_strides[0] = box.source_strides[0] = 1;
    for (int round = 0; round < 4; ++round) {
        const std::uint64_t seed = 10 + static_cast<std::uint64_t>(round);
        other->stamp(from.data(), bytes, 0, seed);
        stream_->follow(native);
        stream_->copy_boxes(std::vector<Box>{box});
        stream_->lead(native);
        other->fill(from.data(), bytes, 0);  // late enough: the copy has the stamp
        EXPECT_EQ(stream_->verify_stamp(to.data(), bytes, 0, seed).bad_bytes, 0u) << round;
    }
    stream_->follow(0);
    stream_->lead(0);
    stream_->synchronize();
    other->synchronize();
}

TEST_P(BoxSuite, checksums_of_many_ranges_are_those_of_plain_loops) {
    const std::uint64_t total = 3 * kChecksumSegment + 4321;
    const auto data = random_bytes(total, 31);
    const Memory block = memory(MemoryKind::device, total);
    to_device(block.data(), data);
    std::mt19937_64 random(4);
    std::vector<ChecksumRange> ranges{{block.data(), total}, {block.data() + 1, total - 1}, {block.data() + 7, 0}};
    for (int i = 0; i < 3000; ++i) {
        const std::uint64_t bytes = random() % (i % 100 == 0 ? total : 600), at = random() % (total - bytes);
        ranges.push_back({block.data() + at, bytes});
    }
    for (const ChecksumKind kind : {ChecksumKind::adler32, ChecksumKind::crc32, ChecksumKind::fletcher32}) {
        const std::vector<std::uint32_t> found = stream_->checksums(kind, ranges);
        ASSERT_EQ(found.size(), ranges.size());
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            const auto at = static_cast<const unsigned char*>(ranges[i].memory) - block.data();
            const auto plain = std::as_bytes(std::span(data)).subspan(static_cast<std::size_t>(at), ranges[i].bytes);
            ASSERT_EQ(found[i], checksum(kind, plain)) << to_string(kind) << " of range " << i;
        }
        EXPECT_TRUE(stream_->checksums(kind, {}).empty());
    }
}

}  // namespace penstock::conformance
