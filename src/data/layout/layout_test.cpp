// Runs of boxes against a loop over elements, on random datasets.
#include "data/layout/layout.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "penstock/error.hpp"

namespace penstock::data {
namespace {

struct Case {
    Stored stored;
    ElementBox box;
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
        for (std::int64_t axis = 0, most = one_of(0, 4); axis < most; ++axis) {
            const std::int64_t extent = one_of(1, 11), chunk = one_of(0, 2) == 0 ? extent : one_of(1, 4);
            stored.shape.push_back(extent);
            stored.chunk_shape.push_back(chunk);
            cells *= (extent + chunk - 1) / chunk;
            const auto at = static_cast<std::size_t>(axis);
            made.box.start[at] = one_of(0, 1) == 0 ? 0 : one_of(0, extent - 1);
            const std::int64_t left = extent - made.box.start[at];
            made.box.step[at] = one_of(0, 2) == 0 ? one_of(1, 5) : 1;
            const std::int64_t most_steps = (left - 1) / made.box.step[at] + 1;
            made.box.count[at] = one_of(0, 1) == 0 ? most_steps : one_of(1, most_steps);
        }
        const bool dense = one_of(0, 1) == 1;
        for (std::int64_t cell = 0; cell < cells; ++cell) {
            if (!dense && one_of(0, 5) == 0) continue;
            stored.cells.push_back(cell);
            const auto far = static_cast<std::uint64_t>(one_of(0, 3)) * 1'000'000'000;  // no two chunks touch
            stored.offsets.push_back(far + 10'000 * stored.cells.size());
        }
        return made;
    }

  private:
    std::int64_t one_of(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
    }
    std::mt19937 random_;
};

// The place in the file of each byte of the box, by its place in memory; empty where a chunk is not stored.
std::map<std::uint64_t, std::uint64_t> bytes_by_element(const Case& given) {
    const Stored& stored = given.stored;
    const std::size_t dimensions = stored.shape.size();
    std::map<std::uint64_t, std::uint64_t> places;
    std::vector<std::int64_t> at(dimensions);
    for (std::uint64_t number = 0;; ++number) {
        std::int64_t cell = 0, inside = 0;
        for (std::size_t axis = 0; axis < dimensions; ++axis) {
            const std::int64_t chunk = stored.chunk_shape[axis];
            const std::int64_t element = given.box.start[axis] + at[axis] * given.box.step[axis];
            const std::int64_t origin = element / chunk * chunk;
            const std::int64_t extent = stored.edge_cut ? std::min(chunk, stored.shape[axis] - origin) : chunk;
            cell = cell * ((stored.shape[axis] + chunk - 1) / chunk) + element / chunk;
            inside = inside * extent + (element - origin);
        }
        const auto found = std::find(stored.cells.begin(), stored.cells.end(), cell);
        if (found == stored.cells.end()) return {};
        const std::uint64_t begin = stored.offsets[static_cast<std::size_t>(found - stored.cells.begin())];
        for (std::uint64_t byte = 0; byte < stored.item_bytes; ++byte) {
            places[number * stored.item_bytes + byte] =
                begin + static_cast<std::uint64_t>(inside) * stored.item_bytes + byte;
        }
        std::size_t axis = dimensions;
        while (axis > 0 && ++at[axis - 1] == given.box.count[axis - 1]) at[--axis] = 0;
        if (axis == 0) return places;
    }
}

// Runs of the fewest pieces that `places` can be cut into.
std::size_t least_runs(const std::map<std::uint64_t, std::uint64_t>& places) {
    std::size_t count = 0;
    std::uint64_t next = 0;
    for (const auto& [memory, file] : places) {
        count += memory == 0 || file != next;
        next = file + 1;
    }
    return count;
}

// As bytes_by_element(), of runs. No two of them share a byte of memory.
std::map<std::uint64_t, std::uint64_t> bytes_of(std::span<const FileRun> runs) {
    std::map<std::uint64_t, std::uint64_t> places;
    for (const FileRun& run : runs) {
        for (std::uint64_t byte = 0; byte < run.bytes; ++byte) {
            EXPECT_TRUE(places.emplace(run.memory_offset + byte, run.file_offset + byte).second);
        }
    }
    return places;
}

TEST(Layout, runs_are_the_bytes_of_the_box) {
    Maker maker(28);
    int taken = 0, absent = 0, many = 0;
    for (int turn = 0; turn < 4000; ++turn) {
        const Case given = maker.make();
        const auto expected = bytes_by_element(given);
        const Layout layout(given.stored);
        Runs runs;
        if (!layout.runs(given.box, runs)) {
            ASSERT_TRUE(expected.empty() || least_runs(expected) > kMostRuns) << turn;
            ++(expected.empty() ? absent : many);
            continue;
        }
        ASSERT_EQ(bytes_of(runs.all()), expected) << turn;
        ASSERT_EQ(runs.all().size(), least_runs(expected)) << turn;
        ++taken;
    }
    EXPECT_GT(taken, 1000);
    EXPECT_GT(absent, 100);
    EXPECT_GT(many, 100);
}

TEST(Layout, listed_runs_are_the_bytes_of_boxes_of_many) {
    Maker maker(29);
    int many = 0;
    for (int turn = 0; turn < 4000; ++turn) {
        const Case given = maker.make();
        const auto expected = bytes_by_element(given);
        RunList runs;
        ASSERT_EQ(Layout(given.stored).runs(given.box, runs), !expected.empty()) << turn;
        if (expected.empty()) continue;
        ASSERT_EQ(bytes_of(runs.all()), expected) << turn;
        ASSERT_EQ(runs.all().size(), least_runs(expected)) << turn;
        many += runs.all().size() > kMostRuns;
    }
    EXPECT_GT(many, 50);
}

TEST(Layout, more_runs_than_a_list_has_are_left_to_a_plan) {
    const auto most = static_cast<std::int64_t>(kMostListedRuns);
    const Layout layout({.shape = {most + 1, 2}, .chunk_shape = {most + 1, 2}, .cells = {0}, .offsets = {0}});
    ElementBox column;
    column.count = {most, 1};
    RunList runs, more;
    EXPECT_TRUE(layout.runs(column, runs));
    EXPECT_EQ(runs.all().size(), kMostListedRuns);
    column.count[0] = most + 1;
    EXPECT_FALSE(layout.runs(column, more));
}

TEST(Layout, of_one_element_without_dimensions) {
    const Layout layout({.shape = {}, .chunk_shape = {}, .item_bytes = 8, .cells = {0}, .offsets = {96}});
    Runs runs;
    ASSERT_TRUE(layout.runs({}, runs));
    ASSERT_EQ(runs.all().size(), 1u);
    EXPECT_EQ(runs.all()[0].file_offset, 96u);
    EXPECT_EQ(runs.all()[0].bytes, 8u);
}

TEST(Layout, refuses_numbers_that_describe_no_dataset) {
    const auto refused = [](const Stored& stored) {
        try {
            static_cast<void>(Layout(stored));
        } catch (const Error& error) {
            return error.code() == ErrorCode::invalid_argument;
        }
        return false;
    };
    const Stored good{.shape = {4, 6}, .chunk_shape = {2, 6}, .item_bytes = 8, .cells = {0, 1}, .offsets = {0, 96}};
    EXPECT_FALSE(refused(good));
    const auto with = [&](auto change) {
        Stored stored = good;
        change(stored);
        return stored;
    };
    constexpr auto kHuge = std::numeric_limits<std::int64_t>::max();
    EXPECT_TRUE(refused(with([](Stored& one) { one.shape.push_back(1); })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.shape[0] = -1; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.chunk_shape[0] = 0; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.item_bytes = 0; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.shape = {kHuge, 6}; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.chunk_shape = {kHuge, 6}; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.cells = {1, 0}; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.cells = {0, 2}; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.cells = {-1, 0}; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.cells = {0}; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.offsets[1] = static_cast<std::uint64_t>(kHuge) - 95; })));
    EXPECT_TRUE(refused(with([](Stored& one) { one.shape = one.chunk_shape = std::vector<std::int64_t>(17, 1); })));
}

}  // namespace
}  // namespace penstock::data
