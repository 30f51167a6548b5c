// Compares the histogram with sorted samples: percentiles within the promised bound, merging as a union, extremes.
#include "base/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace penstock {
namespace {

std::vector<std::uint64_t> latencies(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> shape(9.0, 2.5);  // from tens of ns to seconds
    std::vector<std::uint64_t> samples(count);
    for (auto& sample : samples) sample = static_cast<std::uint64_t>(shape(random));
    return samples;
}

Histogram histogram_of(const std::vector<std::uint64_t>& samples) {
    Histogram histogram;
    for (const std::uint64_t sample : samples) histogram.add(sample);
    return histogram;
}

// Returns the smallest sample that is not below `percent` of all samples.
std::uint64_t exact(std::vector<std::uint64_t> samples, double percent) {
    std::sort(samples.begin(), samples.end());
    const double rank = std::ceil(percent / 100 * static_cast<double>(samples.size()));
    return samples[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

TEST(Histogram, percentiles_lie_within_a_sixty_fourth_above_the_sorted_sample) {
    for (const std::size_t count : {1u, 2u, 10u, 1000u, 100000u}) {
        const auto samples = latencies(count, count);
        const Histogram histogram = histogram_of(samples);
        for (const double percent : {0.0, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
            const std::uint64_t wanted = exact(samples, percent), got = histogram.percentile_ns(percent);
            EXPECT_GE(got, wanted) << percent << " of " << count;
            EXPECT_LE(static_cast<double>(got - wanted), static_cast<double>(wanted) / 64)
                << percent << " of " << count;
        }
    }
}

TEST(Histogram, count_mean_and_extremes_are_exact) {
    const auto samples = latencies(5000, 3);
    const Histogram histogram = histogram_of(samples);
    EXPECT_EQ(histogram.count(), 5000u);
    EXPECT_EQ(histogram.min_ns(), *std::min_element(samples.begin(), samples.end()));
    EXPECT_EQ(histogram.max_ns(), *std::max_element(samples.begin(), samples.end()));
    const auto sum = std::accumulate(samples.begin(), samples.end(), std::uint64_t{0});
    EXPECT_DOUBLE_EQ(histogram.mean_ns(), static_cast<double>(sum) / 5000);
}

TEST(Histogram, merging_is_the_histogram_of_all_samples) {
    const auto left = latencies(3000, 1), right = latencies(200, 2);
    auto all = left;
    all.insert(all.end(), right.begin(), right.end());
    Histogram merged = histogram_of(left);
    merged.merge(histogram_of(right));
    merged.merge(Histogram{});
    const Histogram whole = histogram_of(all);
    EXPECT_EQ(merged.count(), whole.count());
    EXPECT_EQ(merged.min_ns(), whole.min_ns());
    EXPECT_EQ(merged.max_ns(), whole.max_ns());
    EXPECT_DOUBLE_EQ(merged.mean_ns(), whole.mean_ns());
    const auto a = merged.buckets(), b = whole.buckets();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].low_ns, b[i].low_ns);
        EXPECT_EQ(a[i].count, b[i].count);
    }
    Histogram empty;
    empty.merge(whole);
    EXPECT_EQ(empty.min_ns(), whole.min_ns());
}

TEST(Histogram, buckets_hold_every_sample_once_and_start_at_or_below_it) {
    const auto samples = latencies(2000, 9);
    const auto buckets = histogram_of(samples).buckets();
    std::uint64_t counted = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        const std::uint64_t low = buckets[i].low_ns;
        const std::uint64_t end = i + 1 < buckets.size() ? buckets[i + 1].low_ns : ~std::uint64_t{0};
        const auto inside =
            std::count_if(samples.begin(), samples.end(), [&](std::uint64_t one) { return one >= low && one < end; });
        EXPECT_EQ(static_cast<std::uint64_t>(inside), buckets[i].count) << low;
        counted += buckets[i].count;
    }
    EXPECT_EQ(counted, samples.size());
}

TEST(Histogram, zero_and_the_largest_number_are_samples_like_others) {
    Histogram histogram;
    histogram.add(0);
    histogram.add(std::numeric_limits<std::uint64_t>::max() / 4);
    histogram.add(std::uint64_t{1} << 50);
    EXPECT_EQ(histogram.min_ns(), 0u);
    EXPECT_EQ(histogram.max_ns(), std::numeric_limits<std::uint64_t>::max() / 4);
    EXPECT_EQ(histogram.percentile_ns(1), 0u);
    EXPECT_EQ(histogram.percentile_ns(100), std::numeric_limits<std::uint64_t>::max() / 4);
    EXPECT_GE(histogram.percentile_ns(50), std::uint64_t{1} << 50);
    EXPECT_EQ(histogram.buckets().size(), 2u);
}

TEST(Histogram, of_nothing_has_nothing) {
    const Histogram histogram;
    EXPECT_EQ(histogram.count(), 0u);
    EXPECT_EQ(histogram.percentile_ns(99), 0u);
    EXPECT_EQ(histogram.max_ns(), 0u);
    EXPECT_TRUE(histogram.buckets().empty());
}

}  // namespace
}  // namespace penstock
