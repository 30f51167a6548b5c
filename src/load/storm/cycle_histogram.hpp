// A histogram of clock cycles in which device code only adds. Each octave has sixteen buckets, so that a percentile is
// within 6 % of the true value.
#pragma once

#include "penstock/ondevice/platform.hpp"

namespace penstock::load {

inline constexpr ondevice::u32 kCycleOctaves = 28, kCycleParts = 16;  // from 256 cycles on
inline constexpr ondevice::u32 kCycleBuckets = 1 + kCycleOctaves * kCycleParts;

PENSTOCK_ONDEVICE ondevice::u32 cycle_bucket(ondevice::u64 cycles) {
    if (cycles < 256) return 0;
    ondevice::u32 octave = 0;
    while (octave < kCycleOctaves && cycles >= (ondevice::u64{512} << octave)) ++octave;
    if (octave == kCycleOctaves) return kCycleBuckets - 1;
    return 1 + octave * kCycleParts + static_cast<ondevice::u32>((cycles >> (octave + 4)) - kCycleParts);
}

// Returns the smallest number of cycles that the bucket counts.
PENSTOCK_ONDEVICE ondevice::u64 cycle_bucket_low(ondevice::u32 bucket) {
    if (bucket == 0) return 0;
    const ondevice::u32 octave = (bucket - 1) / kCycleParts;
    return static_cast<ondevice::u64>(kCycleParts + (bucket - 1) % kCycleParts) << (octave + 4);
}

}  // namespace penstock::load
