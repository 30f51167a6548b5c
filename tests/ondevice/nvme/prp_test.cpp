// The controller follows physical region pages as the specification says: an offset only in the first page, lists that
// chain at a page's end, and nothing outside the controller's memory.
#include "ondevice/nvme/prp.hpp"

#include <gtest/gtest.h>

#include "ondevice/channel/memory_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 page = RigMemory::page;

u64 total(const std::vector<PrpSpan>& spans) {
    u64 bytes = 0;
    for (const PrpSpan& span : spans) bytes += span.bytes;
    return bytes;
}

struct PrpTest : testing::Test {
    RigMemory memory;
    DmaBlock data = memory.allocate(600 * page);
    DmaBlock lists = memory.allocate(3 * page);
    std::vector<PrpSpan> follow(u64 prp1, u64 prp2, u64 bytes) {
        return prp_spans({prp1, prp2, bytes, page}, memory.translator());
    }
    u64* list(u64 at) { return reinterpret_cast<u64*>(lists.data + at); }
};

TEST_F(PrpTest, one_page_and_two) {
    auto spans = follow(data.io + 512, 0, page - 512);
    ASSERT_EQ(spans.size(), 1u);
    EXPECT_EQ(spans[0].data, data.data + 512);
    spans = follow(data.io + 512, data.io + 5 * page, page);
    ASSERT_EQ(spans.size(), 2u);
    EXPECT_EQ(spans[1].data, data.data + 5 * page);
    EXPECT_EQ(spans[1].bytes, 512u);
}

TEST_F(PrpTest, a_list_that_fills_its_page_chains_to_the_next) {
    const u64 pages = 520;
    for (u64 at = 0; at < 511; ++at) list(0)[at] = data.io + (pages - at) * page;
    list(0)[511] = lists.io + page;
    for (u64 at = 511; at < pages - 1; ++at) list(page)[at - 511] = data.io + (pages - at) * page;
    const auto spans = follow(data.io, lists.io, pages * page);
    ASSERT_EQ(spans.size(), pages);
    EXPECT_EQ(total(spans), pages * page);
    EXPECT_EQ(spans[512].data, data.data + (pages - 511) * page);
}

TEST_F(PrpTest, a_list_may_begin_at_the_last_entry_of_a_page) {
    list(page - 8)[0] = lists.io + page;
    for (u64 at = 0; at < 2; ++at) list(page)[at] = data.io + (at + 7) * page;
    const auto spans = follow(data.io, lists.io + page - 8, 3 * page);
    ASSERT_EQ(spans.size(), 3u);
    EXPECT_EQ(spans[2].data, data.data + 8 * page);
}

TEST_F(PrpTest, what_is_not_allowed_is_refused) {
    EXPECT_TRUE(follow(data.io + 1, 0, 512).empty());
    EXPECT_TRUE(follow(data.io, data.io + page + 512, 2 * page).empty()) << "an offset in the second";
    EXPECT_TRUE(follow(data.io, lists.io + 4, 3 * page).empty()) << "a list between entries";
    EXPECT_TRUE(follow(data.io, 0, 2 * page).empty()) << "no second page";
    EXPECT_TRUE(follow(64, 0, 512).empty()) << "no memory";
    EXPECT_TRUE(follow(data.io, lists.io, 3 * page).empty()) << "zeros in the list";
    EXPECT_TRUE(follow(data.io, 0, 0).empty());
}

TEST(PrpList, is_a_power_of_two_within_a_page) {
    EXPECT_EQ(prp_list_bytes(0, page), 8u);
    EXPECT_EQ(prp_list_bytes(3, page), 32u);
    EXPECT_EQ(prp_list_bytes(512, page), page);
    EXPECT_EQ(prp_list_bytes(513, page), 0u);
}

}  // namespace
}  // namespace penstock::ondevice
