// Pseudo-random numbers that are the same on every machine: splitmix64 (Steele, Lea and Flood 2014). The n-th number of
// the sequence that starts at a seed is scrambled(seed + (n - 1) * kScrambleStep).
#pragma once

#include <cstdint>

namespace penstock::hmatrix {

constexpr std::uint64_t kScrambleStep = 0x9e3779b97f4a7c15;

constexpr std::uint64_t scrambled(std::uint64_t number) {
    number += kScrambleStep;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

}  // namespace penstock::hmatrix
