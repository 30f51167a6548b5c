// The order of requests: the same for one seed, covering the span, within bounds, aligned.
#include "load/requests.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace penstock::load {
namespace {

std::vector<Request> all(Requests requests, std::size_t most = 100000) {
    std::vector<Request> found;
    while (found.size() < most) {
        const auto one = requests.next();
        if (!one) break;
        found.push_back(*one);
    }
    return found;
}

LoadOptions random_of(std::uint64_t bytes) {
    LoadOptions options;
    options.order = RequestOrder::random;
    options.request_bytes = bytes;
    return options;
}

TEST(Requests, in_sequence_cover_the_part_once_and_end_with_its_rest) {
    LoadOptions options;
    options.request_bytes = 1000;
    std::uint64_t at = 500;
    for (const Request& request : all({options, {500, 10'300}, 0})) {
        EXPECT_EQ(request.offset, at);
        at += request.bytes;
    }
    EXPECT_EQ(at, 500u + 10'300u);
}

TEST(Requests, parts_of_threads_cover_the_span_without_overlap) {
    for (const unsigned threads : {1u, 3u, 24u, 32u, 512u}) {
        std::uint64_t at = 4096;
        for (unsigned t = 0; t < threads; ++t) {
            const Part part = part_of({4096, 10'000'001}, t, threads, 65536);
            if (part.bytes == 0) continue;
            EXPECT_EQ(part.offset, at);
            EXPECT_EQ((part.offset - 4096) % 65536, 0u);
            at += part.bytes;
        }
        EXPECT_EQ(at, 4096u + 10'000'001u) << threads;
    }
}

TEST(Requests, that_begin_in_the_middle_go_round) {
    LoadOptions options;
    options.request_bytes = 100;
    const auto found = all({options, {0, 1000}, 0, 700});
    ASSERT_EQ(found.size(), 10u);
    EXPECT_EQ(found.front().offset, 700u);
    EXPECT_EQ(found.back().offset, 600u);
}

TEST(Requests, that_repeat_end_at_their_number) {
    LoadOptions options = random_of(100);
    options.alignment = 1;
    options.requests_per_thread = 77;
    EXPECT_EQ(all({options, {0, 1000}, 0}).size(), 10u);
    options.repeat = true;
    EXPECT_EQ(all({options, {0, 1000}, 0}).size(), 77u);
}

TEST(Requests, at_random_are_aligned_inside_the_part_and_the_same_for_one_seed) {
    LoadOptions options = random_of(8192);
    options.alignment = 512;
    const Part part{1 << 20, 1 << 20};
    const auto first = all({options, part, 3}), again = all({options, part, 3}), other = all({options, part, 4});
    std::set<std::uint64_t> offsets;
    bool differs = false;
    ASSERT_EQ(first.size(), 128u);
    for (std::size_t i = 0; i < first.size(); ++i) {
        EXPECT_EQ(first[i].offset % 512, 0u);
        EXPECT_GE(first[i].offset, part.offset);
        EXPECT_LE(first[i].offset + first[i].bytes, part.offset + part.bytes);
        EXPECT_EQ(first[i].offset, again[i].offset);
        differs = differs || first[i].offset != other[i].offset;
        offsets.insert(first[i].offset);
    }
    EXPECT_TRUE(differs);
    EXPECT_GT(offsets.size(), 100u);
}

TEST(Requests, that_are_unaligned_never_lie_on_a_page) {
    LoadOptions options = random_of(4096);
    options.unaligned = true;
    for (const Request& request : all({options, {0, 4 << 20}, 0})) {
        EXPECT_NE(request.offset % 4096, 0u);
        EXPECT_LE(request.offset + request.bytes, 4u << 20);
    }
}

TEST(Requests, of_several_sizes_are_drawn_from_all_of_them) {
    LoadOptions options = random_of(4096);
    options.request_bytes_max = 16384;
    options.request_bytes_step = 4096;
    std::map<std::uint64_t, int> sizes;
    for (const Request& request : all({options, {0, 64 << 20}, 0})) ++sizes[request.bytes];
    ASSERT_EQ(sizes.size(), 4u);
    for (const auto& [bytes, count] : sizes) {
        EXPECT_EQ(bytes % 4096, 0u);
        EXPECT_GT(count, 1000);
    }
}

TEST(Requests, are_read_as_often_as_asked) {
    LoadOptions options;
    options.read_percent = 30;
    Requests requests(options, {0, 1 << 20}, 0);
    int reads = 0;
    for (int i = 0; i < 10000; ++i) reads += requests.direction() == Direction::read;
    EXPECT_NEAR(reads, 3000, 300);
    options.read_percent = 0;
    EXPECT_EQ(Requests(options, {0, 1}, 0).direction(), Direction::write);
}

TEST(Requests, of_a_part_of_nothing_are_none) {
    LoadOptions options;
    options.repeat = true;
    EXPECT_TRUE(all({options, {4096, 0}, 0}).empty());
    options.order = RequestOrder::random;
    EXPECT_TRUE(all({options, {4096, 0}, 0}).empty());
}

}  // namespace
}  // namespace penstock::load
