// The host's platform keeps what the device headers ask of a platform: old values, order between threads, lone lanes, a
// clock.
#include "penstock/ondevice/platform.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace penstock::ondevice {
namespace {

template <class T>
class WordTest : public testing::Test {};
using WordTypes = testing::Types<u32, u64>;
TYPED_TEST_SUITE(WordTest, WordTypes);

TYPED_TEST(WordTest, exchanges_return_what_was_there) {
    TypeParam word = 5;
    EXPECT_EQ(Native::add<Scope::device>(&word, TypeParam{2}), 5u);
    EXPECT_EQ(Native::set_bits<Scope::system>(&word, TypeParam{8}), 7u);
    EXPECT_EQ(Native::clear_bits<Scope::device>(&word, TypeParam{1}), 15u);
    EXPECT_EQ(Native::load<Scope::system>(&word), 14u);
    TypeParam expected = 13;
    EXPECT_FALSE((Native::swap_if<Scope::device>(&word, expected, TypeParam{1})));
    EXPECT_EQ(expected, 14u);
    EXPECT_TRUE((Native::swap_if<Scope::device>(&word, expected, TypeParam{1})));
    EXPECT_EQ(word, 1u);
}

TYPED_TEST(WordTest, what_was_written_before_a_store_is_seen_after_the_load_that_saw_it) {
    TypeParam flag = 0;
    int payload = 0;
    std::thread writer([&] {
        for (int turn = 1; turn <= 1000; ++turn) {
            while (Native::load<Scope::system>(&flag) != 0) Native::pause(0);
            payload = turn;
            Native::store<Scope::system>(&flag, TypeParam{1});
        }
    });
    for (int turn = 1; turn <= 1000; ++turn) {
        while (Native::load<Scope::system>(&flag) != 1) Native::pause(0);
        EXPECT_EQ(payload, turn);
        Native::store<Scope::system>(&flag, TypeParam{0});
    }
    writer.join();
}

TEST(NativeHost, a_warp_is_one_thread) {
    const Lanes lanes = Native::active();
    EXPECT_EQ(count(lanes), 1u);
    EXPECT_EQ(lowest(lanes), Native::lane());
    EXPECT_EQ(Native::same(lanes, 17), lanes);
    EXPECT_EQ(Native::ballot(lanes, false), 0u);
    EXPECT_EQ(Native::ballot(lanes, true), lanes);
    EXPECT_EQ(Native::from(lanes, 3.5, 0), 3.5);
}

TEST(NativeHost, its_clock_goes_forward) {
    const u64 first = Native::now_ns();
    const u64 cycles = Native::cycles();
    while (Native::now_ns() == first) Native::pause(100);
    EXPECT_GT(Native::now_ns(), first);
    EXPECT_GE(Native::cycles(), cycles);
}

}  // namespace
}  // namespace penstock::ondevice
