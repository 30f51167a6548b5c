// A histogram of latencies in nanoseconds: fixed memory, any number of samples, percentiles within 1/64.
//
// Below 64 ns each value has a bucket. Above that, each power of two is divided into 64 buckets of equal width, so a
// bucket is at most 1/64 of its values wide. Minimum, maximum and mean are exact. Values of 2^42 ns (73 minutes) and
// more share the last bucket. Not thread-safe: each thread fills its own histogram, and the caller merges them.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock {

class Histogram {
  public:
    struct HistogramBucket {
        std::uint64_t low_ns = 0;  // the smallest value of the bucket
        std::uint64_t count = 0;
    };

    void add(std::uint64_t nanoseconds);
    void merge(const Histogram& other);

    std::uint64_t count() const noexcept { return count_; }
    // The following return 0 if the histogram is empty.
    std::uint64_t min_ns() const noexcept { return count_ == 0 ? 0 : min_ns_; }
    std::uint64_t max_ns() const noexcept { return max_ns_; }
    double mean_ns() const noexcept {
        return count_ == 0 ? 0 : static_cast<double>(sum_ns_) / static_cast<double>(count_);
    }
    // Returns a value that is not below `percent` of the samples and exceeds the smallest such sample by less than
    // 1/64. `percent` below 0 counts as 0 (the minimum), above 100 as 100 (the maximum).
    std::uint64_t percentile_ns(double percent) const noexcept;
    std::vector<HistogramBucket> buckets() const;  // buckets that hold samples, ascending

  private:
    std::vector<std::uint64_t> counts_;  // empty until the first sample
    std::uint64_t count_ = 0;
    std::uint64_t sum_ns_ = 0;  // enough for 584 years of latency
    std::uint64_t min_ns_ = 0;
    std::uint64_t max_ns_ = 0;
};

}  // namespace penstock
