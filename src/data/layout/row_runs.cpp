// See row_runs.hpp.
#include "data/layout/row_runs.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

namespace penstock::data {
namespace {

constexpr int kDigit = 11;  // bits
constexpr std::size_t kDigits = std::size_t{1} << kDigit;
constexpr std::size_t kFewNumbers = 256;  // sooner sorted by comparisons

// Sorts by one digit of the numbers. Places whose digits are equal stay in order.
void sort_by_digit(std::span<const std::int64_t> numbers, int shift, std::vector<std::size_t>& places,
                   std::vector<std::size_t>& sorted) {
    std::array<std::size_t, kDigits> begins{};
    const auto digit = [&](std::size_t place) {
        return static_cast<std::size_t>(numbers[place]) >> shift & (kDigits - 1);
    };
    for (const std::size_t place : places) ++begins[digit(place)];
    std::exclusive_scan(begins.begin(), begins.end(), begins.begin(), std::size_t{0});
    for (const std::size_t place : places) sorted[begins[digit(place)]++] = place;
    places.swap(sorted);
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

// Equal numbers stay in order. One thread sorts while all others have nothing to read, so it sorts by digits: 20,000
// numbers take 0.2 ms, by comparisons 1.2.
std::vector<std::size_t> places_in_order(std::span<const std::int64_t> numbers, bool as_in_memory) {
    std::vector<std::size_t> places(numbers.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    if (as_in_memory || std::is_sorted(numbers.begin(), numbers.end())) return places;
    if (places.size() < kFewNumbers) {
        std::ranges::stable_sort(places, {}, [&](std::size_t place) { return numbers[place]; });
        return places;
    }
    const auto largest = static_cast<std::size_t>(*std::max_element(numbers.begin(), numbers.end()));
    std::vector<std::size_t> sorted(places.size());
    for (int shift = 0; shift < 64 && largest >> shift != 0; shift += kDigit) {
        sort_by_digit(numbers, shift, places, sorted);
    }
    return places;
}

bool find_rows(const Layout& layout, const WantedRows& rows, const RowLimits& limits, RowRuns& found) {
    const std::span<const std::int64_t> numbers = rows.numbers;
    ElementBox box = rows.box;
    std::uint64_t row_bytes = layout.item_bytes();
    for (std::size_t axis = 1; axis < layout.dimensions(); ++axis) {
        row_bytes *= static_cast<std::uint64_t>(box.count[axis]);
    }
    std::vector<std::size_t> all;
    if (rows.places.empty()) all = places_in_order(numbers, limits.as_in_memory);
    const std::span<const std::size_t> places = rows.places.empty() ? all : rows.places;
    found.runs.reserve(places.size());
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
