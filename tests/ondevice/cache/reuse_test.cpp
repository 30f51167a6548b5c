// The estimate of whether pages would be used again, against what a cache of that size would do: rows used once, sets
// of pages that fit in the cache and that do not, rows in order, and a change of habit.
#include "penstock/ondevice/cache/reuse.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace penstock::ondevice {
namespace {

constexpr u64 kReusePage = 4096, kRow = 512;
constexpr u32 kPagesOfCache = 1 << 15;

class ReuseTest : public testing::Test {
  protected:
    explicit ReuseTest(u32 frames = kPagesOfCache) : words_(Reuse<Native>::bytes_of(frames) / sizeof(u32)) {
        reuse_ = {words_.data(), words_.data() + 2, Reuse<Native>::sets_of(frames),
                  Reuse<Native>::sample_mask_of(frames)};
    }
    bool pays() const { return reuse_.pays(kRow, kReusePage); }
    void use_at_random(u64 pages, u64 uses) {
        for (u64 use = 0; use < uses; ++use) reuse_.use(key_of(3, random_() % pages));
    }

    std::vector<u32> words_;
    Reuse<Native> reuse_{};
    std::mt19937_64 random_{1};
};

TEST_F(ReuseTest, few_uses_say_nothing) {
    EXPECT_TRUE(pays());
    use_at_random(1 << 20, 16 * Reuse<Native>::few / 2);
    EXPECT_TRUE(pays());
}

TEST_F(ReuseTest, pages_do_not_pay_where_each_is_used_once) {
    for (u64 page = 0; page < 100'000; ++page) reuse_.use(key_of(0, page * 7));
    EXPECT_FALSE(pays());
}

// Half of the uses would find their page: two loads of four KiB in four uses of 512 bytes.
TEST_F(ReuseTest, pages_do_not_pay_where_the_cache_has_half_of_them) {
    use_at_random(2 * kPagesOfCache, 2'000'000);
    EXPECT_FALSE(pays());
}

TEST_F(ReuseTest, pages_pay_where_the_cache_has_nearly_all_of_them) {
    use_at_random(kPagesOfCache * 3 / 4, 2'000'000);
    EXPECT_TRUE(pays());
}

TEST_F(ReuseTest, pages_pay_where_rows_come_in_order) {
    for (u64 row = 0; row < 400'000; ++row) reuse_.use(key_of(0, row * kRow / kReusePage));
    EXPECT_TRUE(pays());
    EXPECT_FALSE(reuse_.pays(kRow / 2, kReusePage)) << "rows of half the bytes, of which as many were used";
}

TEST_F(ReuseTest, what_was_long_ago_weighs_little) {
    use_at_random(u64{1} << 30, 1'000'000);
    ASSERT_FALSE(pays());
    use_at_random(1000, 1'000'000);
    EXPECT_TRUE(pays());
    use_at_random(u64{1} << 30, 1'000'000);
    EXPECT_FALSE(pays());
}

class ReuseOfFewPages : public ReuseTest {
  protected:
    ReuseOfFewPages() : ReuseTest(32) {}
};

TEST_F(ReuseOfFewPages, all_are_watched) {
    for (u32 round = 0; round < 100; ++round)
        for (u64 page = 0; page < 8; ++page) reuse_.use(key_of(0, page));
    EXPECT_TRUE(pays());
    for (u64 page = 0; page < 1000; ++page) reuse_.use(key_of(0, page));
    EXPECT_FALSE(pays());
}

}  // namespace
}  // namespace penstock::ondevice
