// See boxes.hpp.
#include "restart/boxes.hpp"

#include <algorithm>

namespace penstock::restart {
namespace {

// Mixes the bits of a number (splitmix64).
std::uint64_t mixed(std::uint64_t number) noexcept {
    number += 0x9e3779b97f4a7c15;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

}  // namespace

std::uint64_t elements_of(std::span<const std::uint64_t> shape) noexcept {
    std::uint64_t count = 1;
    for (const std::uint64_t length : shape) count *= length;
    return count;
}

std::vector<RunOfField> runs_of(const FieldBox& box, std::uint64_t item_bytes) {
    if (elements_of(box.count) == 0) return {};
    const std::size_t rank = box.shape.size();
    std::size_t split = rank;  // dimensions from here on lie whole in a run
    std::uint64_t row_bytes = item_bytes;
    while (split > 0 && box.count[split - 1] == box.shape[split - 1]) row_bytes *= box.shape[--split];
    std::uint64_t run_bytes = row_bytes;
    if (split > 0) run_bytes *= box.count[split - 1];
    const std::size_t outer = split > 0 ? split - 1 : 0;
    std::vector<std::uint64_t> at(outer);
    std::vector<RunOfField> runs;
    for (std::uint64_t memory = 0;; memory += run_bytes) {
        std::uint64_t first = 0;
        for (std::size_t axis = 0; axis < split; ++axis)
            first = first * box.shape[axis] + box.start[axis] + (axis < outer ? at[axis] : 0);
        runs.push_back({first * row_bytes, memory, run_bytes});
        std::size_t axis = outer;
        while (axis > 0 && ++at[axis - 1] == box.count[axis - 1]) at[--axis] = 0;
        if (axis == 0) return runs;
    }
}

// Each number i has a weight, the difference of two mixed ones, so that the weights of a range have a sum that takes no
// loop. An element weighs the product of its numbers.
std::uint64_t coverage_of(const FieldBox& box) noexcept {
    std::uint64_t weight = 1;
    for (std::size_t axis = 0; axis < box.shape.size(); ++axis) {
        const std::uint64_t low = box.start[axis], high = low + box.count[axis], salt = mixed(axis) << 1;
        weight *= mixed(high ^ salt) - mixed(low ^ salt);
    }
    return weight;
}

}  // namespace penstock::restart
