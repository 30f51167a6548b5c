// See coverage.hpp.
#include "data/selection/coverage.hpp"

namespace penstock::data {
namespace {

// Mixes the bits of a number (splitmix64).
std::uint64_t mixed(std::uint64_t number) noexcept {
    number += 0x9e3779b97f4a7c15;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

}  // namespace

// Each number i has a weight, the difference of two mixed ones, so that the weights of a range have a sum that takes no
// loop. An element weighs the product of its numbers.
std::uint64_t coverage_of(std::span<const std::uint64_t> start, std::span<const std::uint64_t> count) noexcept {
    std::uint64_t weight = 1;
    for (std::size_t axis = 0; axis < start.size(); ++axis) {
        const std::uint64_t low = start[axis], high = low + count[axis], salt = mixed(axis) << 1;
        weight *= mixed(high ^ salt) - mixed(low ^ salt);
    }
    return weight;
}

}  // namespace penstock::data
