// Boxes through a Context: waited for, with errors that say what was wrong, in device and in ordinary memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <thread>

#include "context/test_files.hpp"
#include "penstock/context.hpp"

namespace penstock {
namespace {

Context context_of_test() {
    const char* device = std::getenv("PENSTOCK_TEST_DEVICE");
    return Context({.device = device != nullptr ? device : "host"});
}

// Every second item of a line of 100, backwards.
Box every_second(void* destination, const void* source) {
    const void* last = source == nullptr ? nullptr : static_cast<const std::byte*>(source) + 4 * 98;
    Box box{.destination = destination, .source = last, .item_bytes = 4};
    box.dimensions = 1;
    box.extents[0] = 50;
    box.destination_strides[0] = 4;
    box.source_strides[0] = -8;
    return box;
}

std::vector<std::uint32_t> expected_every_second() {
    std::vector<std::uint32_t> expected(50);
    for (std::uint32_t i = 0; i < 50; ++i) expected[i] = 98 - 2 * i;
    return expected;
}

std::vector<std::uint32_t> line() {
    std::vector<std::uint32_t> numbers(100);
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
}

TEST(ContextBoxes, are_moved_when_the_call_returns) {
    const Context context = context_of_test();
    const Buffer from = context.allocate(400), to = context.allocate(200);
    context.copy_to_device(from.data(), line().data(), 400);
    context.copy_boxes(std::vector<Box>{every_second(to.data(), from.data())});
    std::vector<std::uint32_t> got(50);
    context.copy_to_host(got.data(), to.data(), 200);
    EXPECT_EQ(got, expected_every_second());
    const std::uint32_t item = 77;
    context.fill_boxes(std::vector<Box>{every_second(to.data(), nullptr)}, std::as_bytes(std::span(&item, 1)));
    context.copy_to_host(got.data(), to.data(), 200);
    EXPECT_EQ(got, std::vector<std::uint32_t>(50, 77));
}

TEST(ContextBoxes, of_ordinary_memory_are_moved_where_the_device_can_address_it) {
    const Context context = context_of_test();
    const auto from = line();
    std::vector<std::uint32_t> to(50);
    const std::vector<Box> boxes{every_second(to.data(), from.data())};
    const DeviceInfo info = context.device().info();
    if (!info.emulated && !info.coherent_with_host) {
        EXPECT_THROW(context.copy_boxes(boxes, MemoryKind::system), Error);
        return;
    }
    context.copy_boxes(boxes, MemoryKind::system);
    EXPECT_EQ(to, expected_every_second());
    const std::uint32_t item = 5;
    context.fill_boxes(boxes, std::as_bytes(std::span(&item, 1)), MemoryKind::system);
    EXPECT_EQ(to, std::vector<std::uint32_t>(50, 5));
}

TEST(ContextBoxes, that_make_no_sense_move_nothing_and_the_context_goes_on) {
    const Context context = context_of_test();
    const Buffer from = context.allocate(400), to = context.allocate(200);
    const std::vector<std::uint32_t> blank(50, 9);
    context.copy_to_device(from.data(), line().data(), 400);
    context.copy_to_device(to.data(), blank.data(), 200);
    std::vector<Box> boxes{every_second(to.data(), from.data()), every_second(to.data(), from.data())};
    boxes[1].swap_bytes = 3;
    EXPECT_THROW(context.copy_boxes(boxes), Error);
    EXPECT_THROW(context.fill_boxes(boxes, std::as_bytes(std::span(blank.data(), 1))), Error);
    EXPECT_THROW(context.fill_boxes(boxes, {}), Error);
    std::vector<std::uint32_t> got(50);
    context.copy_to_host(got.data(), to.data(), 200);
    EXPECT_EQ(got, blank);
    boxes.pop_back();
    context.copy_boxes(boxes);
    context.copy_to_host(got.data(), to.data(), 200);
    EXPECT_EQ(got, expected_every_second());
}

TEST(ContextBoxes, of_the_emulated_device_stay_inside_its_memory) {
    const Context context({.device = "host"});
    const Buffer from = context.allocate(400), to = context.allocate(4096);
    Box box = every_second(static_cast<std::byte*>(to.data()) + 4000, from.data());
    EXPECT_THROW(context.copy_boxes(std::vector<Box>{box}), Error);
    box.destination = to.data();
    context.copy_boxes(std::vector<Box>{box});  // the stream that failed is not used again
}

TEST(ContextBoxes, may_be_moved_by_many_threads_at_once) {
    const Context context = context_of_test();
    const Buffer from = context.allocate(400), to = context.allocate(8 * 200);
    context.copy_to_device(from.data(), line().data(), 400);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20; ++i) {
                void* mine = static_cast<std::byte*>(to.data()) + 200 * t;
                context.copy_boxes(std::vector<Box>{every_second(mine, from.data())});
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<std::uint32_t> got(8 * 50);
    context.copy_to_host(got.data(), to.data(), 8 * 200);
    for (std::uint32_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], 98 - 2 * (i % 50));
}

TEST(ContextBoxes, streams_of_others_are_waited_for_where_there_are_any) {
    const Context context = context_of_test();
    context.synchronize_stream(0);
    if (!context.device().info().emulated) return;
    try {
        context.synchronize_stream(12345);
        FAIL() << "waited for a stream that cannot be";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_NE(std::string(error.what()).find("12345"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace penstock
