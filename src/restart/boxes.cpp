// See boxes.hpp.
#include "restart/boxes.hpp"

#include <algorithm>

namespace penstock::restart {
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

}  // namespace penstock::restart
