// See row_runs.hpp.
#include "data/layout/row_runs.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace penstock::data {
namespace {

constexpr int kHalf = 32;  // bits of a number beside those of its place

// Number and place as one word each: these are sorted without a look at the numbers.
void sort_words(std::span<const std::int64_t> numbers, std::vector<std::size_t>& places) {
    for (std::size_t& place : places) place |= static_cast<std::size_t>(numbers[place]) << kHalf;
    std::sort(places.begin(), places.end());
    for (std::size_t& place : places) place &= (std::size_t{1} << kHalf) - 1;
}

// Places of the numbers, in ascending order of those. Equal ones stay in order.
std::vector<std::size_t> places_in_order(std::span<const std::int64_t> numbers, bool as_in_memory) {
    std::vector<std::size_t> places(numbers.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    if (as_in_memory || std::is_sorted(numbers.begin(), numbers.end())) return places;
    const auto fits = [](std::int64_t number) { return number >= 0 && number >> kHalf == 0; };
    if (numbers.size() >> kHalf == 0 && std::all_of(numbers.begin(), numbers.end(), fits)) {
        sort_words(numbers, places);
        return places;
    }
    std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
        return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b;
    });
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

void order_by_memory(std::vector<FileRun>& runs) {
    const auto before = [](const FileRun& a, const FileRun& b) { return a.memory_offset < b.memory_offset; };
    if (!std::is_sorted(runs.begin(), runs.end(), before)) std::sort(runs.begin(), runs.end(), before);
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
    const std::vector<std::size_t> places = places_in_order(numbers, limits.as_in_memory);
    std::size_t before = numbers.size();  // place of the row that was found last
    const bool is_equal = layout.has_equal_rows();
    Runs runs;
    bool has_runs = false;
    std::uint64_t begin = 0, looked = 0;  // of this row, and of the one that `runs` are of, where all lie alike
    for (const std::size_t place : places) {
        const std::uint64_t to = place * row_bytes;
        if (!limits.as_in_memory && before != numbers.size() && numbers[before] == numbers[place]) {
            found.copies.push_back({before * row_bytes, to, row_bytes});
            continue;
        }
        before = place;
        if (is_equal && !layout.row_begin(numbers[place], begin)) return false;
        if (!is_equal || !std::exchange(has_runs, true)) {
            looked = begin;
            box.start[0] = numbers[place];
            runs.clear();
            if (!layout.runs(box, runs) || runs.all().size() > limits.runs_of_a_row) return false;
            const auto is_long = [&](const FileRun& run) { return run.bytes > limits.run_bytes; };
            if (std::any_of(runs.all().begin(), runs.all().end(), is_long)) return false;
        }
        const std::uint64_t shift = begin - looked;
        for (const FileRun& run : runs.all()) {
            add({run.file_offset + shift, run.memory_offset + to, run.bytes}, limits.run_bytes, found.runs);
        }
    }
    if (limits.as_in_memory) order_by_memory(found.runs);  // those of one row come chunk by chunk
    return true;
}

}  // namespace penstock::data
