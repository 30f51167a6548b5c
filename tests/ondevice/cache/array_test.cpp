// Arrays over one cache: every way to read gives back what was stored, and bounds and rights hold.
#include "penstock/ondevice/array.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <mutex>
#include <numeric>
#include <thread>
#include <type_traits>

#include "ondevice/cache/cache_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kPage = 512;
constexpr u64 kItems = 1000;  // of 8 bytes: 15 pages and a part

// Two arrays of one file, one after the other.
struct TwoArrays : DiskStore {
    static u64 place(u64 key) { return array_of(key) * 16 + (key & ((u64{1} << kPageBits) - 1)); }
    Status begin(Lanes lanes, u64 key, void* page, u64 deadline, u32& ticket) const {
        return DiskStore::begin(lanes, place(key), page, deadline, ticket);
    }
    Status test(Lanes lanes, u32 ticket, u64 key, void* page) const {
        return DiskStore::test(lanes, ticket, place(key), page);
    }
    Status prepare(Lanes lanes, u64 key, const void* page, u64 deadline, u32& ticket) const {
        return DiskStore::prepare(lanes, place(key), page, deadline, ticket);
    }
};

struct ArrayOverCache : testing::Test {
    using Rig = CacheRig<SweepResistant, Native, TwoArrays>;
    using Numbers = CachedArray<u64, Rig::Cache>;
    Disk disk{32, kPage};
    Rig rig{shape_of(4, kPage), TwoArrays{{&disk}}, 4};
    int status = 0;
    std::deque<Rig::Cache> caches;  // one for each array

    Numbers array(u32 number, bool writable = true, u32 caller = 0) {
        caches.push_back(rig.cache(caller));
        return {caches.back(), {number, kItems, 1'000'000'000, writable, &status}};
    }
    static u64 stored(u32 number, u64 index) { return word_of(number * 16 + index / 64, index % 64, 0); }
};

// If the page were written back meanwhile, an atomic on a cached element would be lost. So elements have no address: an
// item is a value that loads and stores, and visits see items that cannot be changed. tests/refused compiles what users
// may try.
using Element = decltype(std::declval<const CachedArray<u64, CacheRig<>::Cache>&>()[0]);
static_assert(!std::is_convertible_v<Element*, u64*> && !std::is_reference_v<Element>);

TEST_F(ArrayOverCache, reads_items_of_both_arrays) {
    const Numbers first = array(0), second = array(1);
    for (u64 index = 0; index < kItems; index += 7) {
        ASSERT_EQ(first[index], stored(0, index));
        ASSERT_EQ(second[index], stored(1, index));
    }
    EXPECT_EQ(static_cast<Status>(status), Status::ok);
    EXPECT_EQ(array(0).size(), kItems);
}

TEST_F(ArrayOverCache, what_is_stored_is_read_back_and_reaches_the_disk) {
    const Numbers numbers = array(1);
    for (u64 index = 0; index < kItems; ++index) numbers[index] = index * 3;
    numbers[5] = numbers[6];
    for (u64 index = 6; index < kItems; ++index) ASSERT_EQ(numbers[index], index * 3);
    EXPECT_EQ(numbers[5], 18u);
    EXPECT_EQ(static_cast<Status>(status), Status::ok);
    EXPECT_EQ(rig.cache().flush(soon()), Status::ok);
    EXPECT_EQ(disk.word(16 + 999 / 64, 999 % 64), 2997u);
    EXPECT_EQ(disk.word(3, 3), word_of(3, 3, 0));  // the other array is as it was
}

TEST_F(ArrayOverCache, bounds_and_rights_are_statuses_and_touch_nothing) {
    const Numbers numbers = array(0), fixed = array(0, false);
    u64 value = 17;
    EXPECT_EQ(numbers.load(kItems, value), Status::out_of_range);
    EXPECT_EQ(numbers.load(~0ull, value), Status::out_of_range);
    EXPECT_EQ(numbers.store(kItems, value), Status::out_of_range);
    EXPECT_EQ(numbers.copy_out({kItems - 1, 2}, &value), Status::out_of_range);
    EXPECT_EQ(numbers.copy_out({kItems, ~0ull}, &value), Status::out_of_range);
    EXPECT_EQ(numbers.prefetch({1, kItems}), Status::out_of_range);
    EXPECT_EQ(fixed.store(1, value), Status::read_only);
    EXPECT_EQ(value, 17u);
    EXPECT_EQ(disk.loads, 0u);
    EXPECT_EQ(numbers[kItems], 0u);
    EXPECT_EQ(static_cast<Status>(status), Status::out_of_range);
    fixed[1] = 5;
    EXPECT_EQ(static_cast<Status>(status), Status::out_of_range);  // the array keeps the first failure
    EXPECT_EQ(rig.cache().flush(soon()), Status::ok);
    EXPECT_EQ(disk.puts, 0u);
}

TEST_F(ArrayOverCache, control_the_last_item_of_an_array_that_may_be_written_is_done_all_that) {
    const Numbers numbers = array(0);
    u64 value = 0;
    EXPECT_EQ(numbers.load(kItems - 1, value), Status::ok);
    EXPECT_EQ(value, stored(0, kItems - 1));
    EXPECT_EQ(numbers.store(kItems - 1, value), Status::ok);
    EXPECT_EQ(numbers.copy_out({kItems - 1, 1}, &value), Status::ok);
    EXPECT_EQ(numbers.copy_out({kItems, 0}, &value), Status::ok);
    EXPECT_EQ(numbers.prefetch({1, kItems - 1}), Status::ok);
    EXPECT_EQ(numbers[kItems - 1], value);
    EXPECT_EQ(static_cast<Status>(status), Status::ok);
    EXPECT_EQ(rig.cache().flush(soon()), Status::ok);
    EXPECT_EQ(disk.puts, 1u);
}

TEST_F(ArrayOverCache, tiles_and_rows_come_whole) {
    const Numbers numbers = array(1);
    std::vector<u64> tile(300, 0);
    for (u32 member = 0; member < 3; ++member) {
        ASSERT_EQ(numbers.load_tile({50, 300}, tile.data(), member, 3), Status::ok);
    }
    for (u64 item = 0; item < tile.size(); ++item) ASSERT_EQ(tile[item], stored(1, 50 + item));

    const std::vector<u64> rows = {9, 0, 99, 40};
    std::vector<u64> got(rows.size() * 10, 0);
    for (u32 member = 0; member < 2; ++member)
        ASSERT_EQ(numbers.gather({rows.data(), 4, 10}, got.data(), member, 2), Status::ok);
    for (u64 item = 0; item < got.size(); ++item) ASSERT_EQ(got[item], stored(1, rows[item / 10] * 10 + item % 10));
    const u64 outside = 100;
    EXPECT_EQ(numbers.gather({&outside, 1, 10}, got.data(), 0, 1), Status::out_of_range);
    EXPECT_EQ(numbers.gather({&outside, 1, 0}, got.data(), 0, 1), Status::out_of_range);
}

TEST_F(ArrayOverCache, prefetched_items_are_loaded_once) {
    const Numbers numbers = array(0);
    EXPECT_EQ(numbers.prefetch({60, 70}), Status::ok);  // pages 0, 1 and 2
    EXPECT_EQ(disk.loads, 3u);
    std::vector<u64> items(70);
    EXPECT_EQ(numbers.copy_out({60, 70}, items.data()), Status::ok);
    EXPECT_EQ(disk.loads, 3u);
    EXPECT_EQ(items.back(), stored(0, 129));
}

TEST_F(ArrayOverCache, a_failing_disk_is_told) {
    disk.fail_load_each = 1;
    EXPECT_EQ(array(0)[3], 0u);
    EXPECT_EQ(static_cast<Status>(status), Status::io_error);
}

TEST_F(ArrayOverCache, callers_store_their_own_pages_together) {
    std::mutex making;
    std::vector<std::thread> threads;
    for (u32 self = 0; self < 4; ++self)
        threads.emplace_back([&, self] {
            const Numbers numbers = [&] {
                const std::scoped_lock lock(making);
                return array(0, true, self);
            }();
            for (u64 index = 0; index < kItems; ++index)
                if (index / 64 % 4 == self) numbers[index] = index + 1;
        });
    for (auto& thread : threads) thread.join();
    const Numbers numbers = array(0);
    for (u64 index = 0; index < kItems; ++index) ASSERT_EQ(numbers[index], index + 1);
    EXPECT_EQ(static_cast<Status>(status), Status::ok);
}

}  // namespace
}  // namespace penstock::ondevice
