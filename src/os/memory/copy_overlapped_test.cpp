// Pieces that are copied together or one by one hold the right bytes, and no byte around them changes.
#include "os/memory/copy_overlapped.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace penstock::os {
namespace {

constexpr std::size_t kRoom = 20 * 1024;  // for one piece

struct Pieces {
    explicit Pieces(const std::vector<std::size_t>& sizes) : from(sizes.size() * kRoom), to(from.size(), 'x') {
        std::mt19937 random(1);
        for (char& one : from) one = static_cast<char>(random());
        wanted = to;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const std::size_t source = i * kRoom + random() % 100, target = i * kRoom + 1 + random() % 100;
            std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source), sizes[i],
                        wanted.begin() + static_cast<std::ptrdiff_t>(target));
            pieces.push_back({&to[target], &from[source], sizes[i]});
        }
    }
    // Copies as a caller does. Returns how many pieces were copied together.
    std::size_t copy() {
        std::size_t together = 0;
        for (std::span<const HostCopy> left = pieces; !left.empty();) {
            const std::size_t some = overlap_count(left);
            copy_overlapped(left.first(some), left.subspan(some));
            together += some > 1 ? some : 0;
            left = left.subspan(some);
        }
        return together;
    }
    std::vector<char> from, to, wanted;
    std::vector<HostCopy> pieces;
};

bool wide() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") != 0;
#else
    return false;
#endif
}

// Skips with a message if this machine cannot copy pieces together, because the tests below then prove less.
TEST(CopyOverlapped, this_processor_can) {
    if (!wide()) GTEST_SKIP() << "no registers of 64 bytes here: pieces go one by one";
    Pieces four(std::vector<std::size_t>(4, 256));
    EXPECT_EQ(four.copy(), kOverlap);
    EXPECT_EQ(four.to, four.wanted);
}

TEST(CopyOverlapped, pages_go_four_at_a_time_where_the_processor_can) {
    Pieces pages(std::vector<std::size_t>(11, 4096));
    EXPECT_EQ(pages.copy(), wide() ? 8u : 0u);
    EXPECT_EQ(pages.to, pages.wanted);
}

TEST(CopyOverlapped, every_size_is_copied_whole) {
    for (const std::size_t bytes : {0u, 1u, 255u, 256u, 257u, 512u, 768u, 4000u, 8192u, 16384u, 16640u}) {
        Pieces alike(std::vector<std::size_t>(9, bytes));
        alike.copy();
        EXPECT_EQ(alike.to, alike.wanted) << bytes;
    }
}

TEST(CopyOverlapped, pieces_that_differ_or_are_large_or_few_go_one_by_one) {
    Pieces differ({4096, 4096, 512, 4096, 256, 4096, 4096}), large(std::vector<std::size_t>(6, 16640)),
        odd(std::vector<std::size_t>(6, 4095)), few({4096, 4096, 4096});
    for (Pieces* const some : {&differ, &large, &odd, &few}) {
        EXPECT_EQ(some->copy(), 0u);
        EXPECT_EQ(some->to, some->wanted);
    }
}

// Four equal pieces follow one that differs.
TEST(CopyOverlapped, what_goes_together_is_found_in_the_middle) {
    Pieces mixed({512, 4096, 4096, 4096, 4096, 300});
    EXPECT_EQ(mixed.copy(), wide() ? 4u : 0u);
    EXPECT_EQ(mixed.to, mixed.wanted);
}

}  // namespace
}  // namespace penstock::os
