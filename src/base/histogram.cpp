// See histogram.hpp.
#include "base/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace penstock {
namespace {

constexpr unsigned kSubBits = 6;  // 64 buckets for each power of two
constexpr unsigned kTopBit = 42;  // values from 2^42 on share the last bucket
constexpr std::uint64_t kSub = std::uint64_t{1} << kSubBits;
constexpr std::size_t kBuckets = static_cast<std::size_t>((kTopBit - kSubBits + 1) * kSub);

// Returns v itself for v < 64. Otherwise returns 64 times the octave plus the six bits after the leading one.
std::size_t bucket_of(std::uint64_t value) noexcept {
    value = std::min(value, (std::uint64_t{1} << kTopBit) - 1);
    if (value < kSub) return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - kSubBits - 1;
    return static_cast<std::size_t>((shift + 1) * kSub + (value >> shift) - kSub);
}

std::uint64_t low_of(std::size_t bucket) noexcept {
    if (bucket < kSub) return bucket;
    const std::uint64_t shift = bucket / kSub - 1;
    return (kSub + bucket % kSub) << shift;
}

}  // namespace

void Histogram::add(std::uint64_t nanoseconds) {
    if (counts_.empty()) counts_.resize(kBuckets);
    ++counts_[bucket_of(nanoseconds)];
    min_ns_ = count_ == 0 ? nanoseconds : std::min(min_ns_, nanoseconds);
    max_ns_ = std::max(max_ns_, nanoseconds);
    sum_ns_ += nanoseconds;
    ++count_;
}

void Histogram::merge(const Histogram& other) {
    if (other.count_ == 0) return;
    if (counts_.empty()) counts_.resize(kBuckets);
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    min_ns_ = count_ == 0 ? other.min_ns_ : std::min(min_ns_, other.min_ns_);
    max_ns_ = std::max(max_ns_, other.max_ns_);
    sum_ns_ += other.sum_ns_;
    count_ += other.count_;
}

std::uint64_t Histogram::percentile_ns(double percent) const noexcept {
    if (count_ == 0) return 0;
    const double wanted = std::ceil(std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count_));
    const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, count_);
    if (rank == 1) return min_ns_;
    if (rank == count_) return max_ns_;  // also the maximum of the last bucket, which has no upper end
    std::uint64_t seen = 0;
    std::size_t bucket = 0;
    while ((seen += counts_[bucket]) < rank) ++bucket;
    if (bucket + 1 == kBuckets) return max_ns_;
    return std::clamp(low_of(bucket + 1) - 1, min_ns_, max_ns_);
}

std::vector<Histogram::HistogramBucket> Histogram::buckets() const {
    std::vector<HistogramBucket> filled;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        if (counts_[i] != 0) filled.push_back({low_of(i), counts_[i]});
    }
    return filled;
}

}  // namespace penstock
