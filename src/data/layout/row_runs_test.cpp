// Rows of random datasets against a loop over elements.
#include "data/layout/row_runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace penstock::data {
namespace {

constexpr RowLimits kNoLimits{.run_bytes = 1 << 20, .runs_of_a_row = kMostRuns};

struct Case {
    Stored stored;
    ElementBox row;
    std::vector<std::int64_t> numbers;
};

class Maker {
  public:
    explicit Maker(unsigned seed) : random_(seed) {}

    Case make() {
        Case made;
        Stored& stored = made.stored;
        stored.item_bytes = static_cast<std::uint64_t>(one_of(1, 9));
        stored.edge_cut = one_of(0, 1) == 1;
        std::int64_t cells = 1;
        for (std::int64_t axis = 0, most = one_of(1, 3); axis < most; ++axis) {
            const std::int64_t extent = one_of(1, 8), chunk = one_of(0, 2) == 0 ? extent : one_of(1, 4);
            stored.shape.push_back(extent);
            stored.chunk_shape.push_back(chunk);
            cells *= (extent + chunk - 1) / chunk;
            const auto at = static_cast<std::size_t>(axis);
            made.row.start[at] = one_of(0, 1) == 0 ? 0 : one_of(0, extent - 1);
            made.row.count[at] = axis == 0 ? 1 : one_of(1, extent - made.row.start[at]);
        }
        for (std::int64_t row = 0, rows = one_of(1, 12); row < rows; ++row) {
            made.numbers.push_back(one_of(0, stored.shape[0] - 1));
        }
        if (one_of(0, 1) == 0) std::sort(made.numbers.begin(), made.numbers.end());
        const bool dense = one_of(0, 3) != 0;
        for (std::int64_t cell = 0; cell < cells; ++cell) {
            if (!dense && one_of(0, 5) == 0) continue;
            stored.cells.push_back(cell);
            stored.offsets.push_back(static_cast<std::uint64_t>(one_of(0, 3)) * 100'000 + 10'000 * stored.cells.size());
        }
        return made;
    }

  private:
    std::int64_t one_of(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
    }
    std::mt19937 random_;
};

using Places = std::map<std::uint64_t, std::uint64_t>;  // byte of memory: byte of the file

// False: a chunk of the row is not stored.
bool add_row(const Case& given, std::size_t place, Places& places) {
    const Stored& stored = given.stored;
    const std::size_t dimensions = stored.shape.size();
    std::vector<std::int64_t> at(dimensions);
    std::uint64_t elements = 1;
    for (std::size_t axis = 1; axis < dimensions; ++axis) elements *= static_cast<std::uint64_t>(given.row.count[axis]);
    for (std::uint64_t number = 0; number < elements; ++number) {
        std::int64_t cell = 0, inside = 0;
        for (std::size_t axis = 0; axis < dimensions; ++axis) {
            const std::int64_t start = axis == 0 ? given.numbers[place] : given.row.start[axis];
            const std::int64_t chunk = stored.chunk_shape[axis], element = start + at[axis];
            const std::int64_t origin = element / chunk * chunk;
            const std::int64_t extent = stored.edge_cut ? std::min(chunk, stored.shape[axis] - origin) : chunk;
            cell = cell * ((stored.shape[axis] + chunk - 1) / chunk) + element / chunk;
            inside = inside * extent + (element - origin);
        }
        const auto found = std::find(stored.cells.begin(), stored.cells.end(), cell);
        if (found == stored.cells.end()) return false;
        const std::uint64_t begin = stored.offsets[static_cast<std::size_t>(found - stored.cells.begin())];
        for (std::uint64_t byte = 0; byte < stored.item_bytes; ++byte) {
            places[(place * elements + number) * stored.item_bytes + byte] =
                begin + static_cast<std::uint64_t>(inside) * stored.item_bytes + byte;
        }
        for (std::size_t axis = dimensions; axis-- > 1;) {
            if (++at[axis] < given.row.count[axis]) break;
            at[axis] = 0;
        }
    }
    return true;
}

TEST(RowRuns, are_the_bytes_of_the_rows) {
    Maker maker(7);
    int taken = 0, absent = 0;
    for (int turn = 0; turn < 3000; ++turn) {
        const Case given = maker.make();
        Places expected;
        bool stored = true;
        for (std::size_t place = 0; place < given.numbers.size(); ++place) {
            stored = stored && add_row(given, place, expected);
        }
        RowRuns found;
        const bool is_found = find_rows(Layout(given.stored), {given.row, given.numbers}, kNoLimits, found);
        ASSERT_EQ(is_found, stored) << turn;
        ++(stored ? taken : absent);
        if (!stored) continue;
        Places places;
        for (const FileRun& run : found.runs) {
            for (std::uint64_t byte = 0; byte < run.bytes; ++byte) {
                ASSERT_TRUE(places.emplace(run.memory_offset + byte, run.file_offset + byte).second) << turn;
            }
        }
        const std::size_t distinct = places.size();
        for (const RowCopy& copy : found.copies) {
            for (std::uint64_t byte = 0; byte < copy.bytes; ++byte) {
                ASSERT_TRUE(places.emplace(copy.to + byte, places.at(copy.from + byte)).second) << turn;
            }
        }
        ASSERT_EQ(places, expected) << turn;
        std::vector<std::int64_t> once = given.numbers;
        std::sort(once.begin(), once.end());
        once.erase(std::unique(once.begin(), once.end()), once.end());
        ASSERT_EQ(distinct, expected.size() / given.numbers.size() * once.size()) << "each row is read once: " << turn;
    }
    EXPECT_GT(taken, 1000);
    EXPECT_GT(absent, 100);
}

TEST(RowRuns, for_memory_that_is_filled_in_order_come_in_that_order) {
    Maker maker(8);
    RowLimits limits = kNoLimits;
    limits.as_in_memory = true;
    for (int turn = 0; turn < 1000; ++turn) {
        const Case given = maker.make();
        Places expected, places;
        bool stored = true;
        for (std::size_t place = 0; place < given.numbers.size(); ++place) {
            stored = stored && add_row(given, place, expected);
        }
        RowRuns found;
        ASSERT_EQ(find_rows(Layout(given.stored), {given.row, given.numbers}, limits, found), stored) << turn;
        if (!stored) continue;
        ASSERT_TRUE(found.copies.empty());
        std::uint64_t next = 0;  // byte of memory
        for (const FileRun& run : found.runs) {
            ASSERT_EQ(run.memory_offset, next) << turn;
            next += run.bytes;
            for (std::uint64_t byte = 0; byte < run.bytes; ++byte) {
                places.emplace(run.memory_offset + byte, run.file_offset + byte);
            }
        }
        ASSERT_EQ(places, expected) << turn;
    }
}

TEST(RowRuns, join_rows_that_continue_each_other_up_to_the_limit) {
    const Layout layout({.shape = {100, 4}, .chunk_shape = {100, 4}, .item_bytes = 1, .cells = {0}, .offsets = {8}});
    ElementBox row;
    row.count = {1, 4};
    const std::vector<std::int64_t> numbers{5, 6, 7, 8, 20, 19};
    RowRuns found;
    ASSERT_TRUE(find_rows(layout, {row, numbers}, {.run_bytes = 12, .runs_of_a_row = 8}, found));
    ASSERT_EQ(found.runs.size(), 4u);
    EXPECT_EQ(found.runs[0].bytes, 12u);
    EXPECT_EQ(found.runs[1].bytes, 4u) << "a longer run would be no small read";
    EXPECT_EQ(found.runs[2].memory_offset, 20u) << "in the order of the file";
}

TEST(RowRuns, are_of_numbers_of_any_size) {
    const std::int64_t many = std::int64_t{3} << 40;
    const Layout layout({.shape = {many}, .chunk_shape = {many}, .item_bytes = 1, .cells = {0}, .offsets = {8}});
    ElementBox row;
    row.count = {1};
    for (const std::int64_t large : {std::int64_t{1} << 31, std::int64_t{1} << 32, many - 1}) {
        const std::vector<std::int64_t> numbers{large, 7, large - 4};
        RowRuns found;
        ASSERT_TRUE(find_rows(layout, {row, numbers}, {.run_bytes = 12, .runs_of_a_row = 8}, found));
        ASSERT_EQ(found.runs.size(), 3u);
        const std::vector<std::uint64_t> expected{1, 2, 0};
        for (std::size_t at = 0; at < 3; ++at) {
            EXPECT_EQ(found.runs[at].memory_offset, expected[at]);
            EXPECT_EQ(found.runs[at].file_offset, static_cast<std::uint64_t>(numbers[expected[at]]) + 8);
        }
    }
}

TEST(RowRuns, leave_long_and_scattered_rows_to_others) {
    const Layout layout({.shape = {9, 64}, .chunk_shape = {9, 4}, .item_bytes = 1,
                         .cells = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                         .offsets = {0, 36, 72, 108, 144, 180, 216, 252, 288, 324, 360, 396, 432, 468, 504, 540}});
    ElementBox row;
    row.count = {1, 64};
    const std::vector<std::int64_t> numbers{1, 2};
    RowRuns found;
    EXPECT_FALSE(find_rows(layout, {row, numbers}, {.run_bytes = 64, .runs_of_a_row = 15}, found));
    EXPECT_FALSE(find_rows(layout, {row, numbers}, {.run_bytes = 3, .runs_of_a_row = 16}, found));
    EXPECT_TRUE(find_rows(layout, {row, numbers}, {.run_bytes = 4, .runs_of_a_row = 16}, found));
}

TEST(RowRuns, many_numbers_of_a_large_dataset_come_in_order) {
    std::mt19937_64 random(5);
    for (const std::int64_t extent : {3L, 2000L, 60'000L, 1L << 40}) {
        Stored stored;
        stored.item_bytes = 1;
        stored.shape = stored.chunk_shape = {extent};
        stored.cells = {0};
        stored.offsets = {0};
        const Layout layout(std::move(stored));
        std::uniform_int_distribution<std::int64_t> any(0, extent - 1);
        std::vector<std::int64_t> numbers(3000);
        for (std::int64_t& number : numbers) number = any(random);
        WantedRows rows;
        rows.box.count[0] = 1;
        rows.numbers = numbers;
        RowRuns found;
        ASSERT_TRUE(find_rows(layout, rows, {.run_bytes = 1, .runs_of_a_row = 1}, found));
        EXPECT_EQ(found.runs.size() + found.copies.size(), numbers.size());
        std::int64_t last = -1;
        for (const FileRun& run : found.runs) {
            const auto number = static_cast<std::int64_t>(run.file_offset);
            EXPECT_GT(number, last);
            last = number;
            const auto first = std::find(numbers.begin(), numbers.end(), number);
            ASSERT_EQ(static_cast<std::ptrdiff_t>(run.memory_offset), first - numbers.begin()) << "the first is read";
        }
        for (const RowCopy& copy : found.copies) {
            ASSERT_EQ(numbers[copy.from], numbers[copy.to]);
            ASSERT_LT(copy.from, copy.to);
        }
    }
}

}  // namespace
}  // namespace penstock::data
