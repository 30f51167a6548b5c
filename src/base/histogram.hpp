// A histogram of latencies in nanoseconds: fixed memory, any number of samples, percentiles within 1/64.
//
// Log-linear: below 64 ns each value has a bucket; above, each power of two is divided into 64 buckets of equal width,
// so a bucket is at most 1/64 of its values wide. Minimum, maximum and mean are exact. Values of 2^42 ns (73 minutes)
// and more share the last bucket. Not for several threads at once: each thread has its own, and they are merged.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock {

class Histogram {
  public:
    struct Bucket {
        std::uint64_t low_ns = 0;  // the smallest value that falls into it
        std::uint64_t count = 0;
    };

    void add(std::uint64_t nanoseconds);
    void merge(const Histogram& other);

    std::uint64_t count() const noexcept { return count_; }
    // All of these are 0 when nothing was added.
    std::uint64_t min_ns() const noexcept { return count_ == 0 ? 0 : min_ns_; }
    std::uint64_t max_ns() const noexcept { return max_ns_; }
    double mean_ns() const noexcept {
        return count_ == 0 ? 0 : static_cast<double>(sum_ns_) / static_cast<double>(count_);
    }
    // A value that at least `percent` of the samples do not exceed, and which exceeds the smallest such sample by less
    // than 1/64. `percent` below 0 counts as 0 (the minimum), above 100 as 100 (the maximum).
    std::uint64_t percentile_ns(double percent) const noexcept;
    std::vector<Bucket> buckets() const;  // those that hold samples, ascending

  private:
    std::vector<std::uint64_t> counts_;  // empty until the first sample
    std::uint64_t count_ = 0;
    std::uint64_t sum_ns_ = 0;  // 584 years of latency fit
    std::uint64_t min_ns_ = 0;
    std::uint64_t max_ns_ = 0;
};

}  // namespace penstock
