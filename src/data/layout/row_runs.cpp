// See row_runs.hpp.
#include "data/layout/row_runs.hpp"

#include <algorithm>
#include <numeric>

namespace penstock::data {
namespace {

// Places of the numbers, in ascending order of those. Equal ones stay in order.
std::vector<std::size_t> places_in_order(std::span<const std::int64_t> numbers) {
    std::vector<std::size_t> places(numbers.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    if (!std::is_sorted(numbers.begin(), numbers.end())) {
        std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
            return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b;
        });
    }
    return places;
}

void add(const FileRun& run, std::uint64_t most_bytes, std::vector<FileRun>& runs) {
    if (!runs.empty()) {
        FileRun& last = runs.back();
        const bool touches =
            last.file_offset + last.bytes == run.file_offset && last.memory_offset + last.bytes == run.memory_offset;
        if (touches && last.bytes + run.bytes <= most_bytes) {
            last.bytes += run.bytes;
            return;
        }
    }
    runs.push_back(run);
}

}  // namespace

bool find_rows(const Layout& layout, const WantedRows& rows, const RowLimits& limits, RowRuns& found) {
    const std::span<const std::int64_t> numbers = rows.numbers;
    ElementBox box = rows.box;
    std::uint64_t row_bytes = layout.item_bytes();
    for (std::size_t axis = 1; axis < layout.dimensions(); ++axis) {
        row_bytes *= static_cast<std::uint64_t>(box.count[axis]);
    }
    found.runs.reserve(numbers.size());
    const std::vector<std::size_t> places = places_in_order(numbers);
    std::size_t before = numbers.size();  // place of the row that was found last
    for (const std::size_t place : places) {
        const std::uint64_t to = place * row_bytes;
        if (before != numbers.size() && numbers[before] == numbers[place]) {
            found.copies.push_back({before * row_bytes, to, row_bytes});
            continue;
        }
        before = place;
        box.start[0] = numbers[place];
        Runs runs;
        if (!layout.runs(box, runs) || runs.all().size() > limits.runs_of_a_row) return false;
        for (const FileRun& run : runs.all()) {
            if (run.bytes > limits.run_bytes) return false;
            add({run.file_offset, run.memory_offset + to, run.bytes}, limits.run_bytes, found.runs);
        }
    }
    return true;
}

}  // namespace penstock::data
