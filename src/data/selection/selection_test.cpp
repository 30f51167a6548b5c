// Spans of selections against a loop over elements, on random datasets, memories and limits.
#include "data/selection/selection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "penstock/error.hpp"
#include "support/sanitized.hpp"

namespace penstock::data {
namespace {

using Numbers = std::vector<std::int64_t>;
using Places = std::map<std::int64_t, std::pair<Numbers, std::int64_t>>;  // in memory: (cell, byte of the chunk)

struct Drawn {
    StoredGrid grid;
    Selection selection;
    CutLimits limits;
};

class Drawing {
  public:
    explicit Drawing(unsigned seed) : random_(seed) {}

    Drawn draw() {
        Drawn drawn;
        StoredGrid& grid = drawn.grid;
        grid.item_bytes = static_cast<std::uint64_t>(one_of(1, 9));
        const std::int64_t dimensions = one_of(0, 4);
        for (std::int64_t axis = 0; axis < dimensions; ++axis) {
            grid.shape.push_back(one_of(1, 9));
            grid.chunk_shape.push_back(one_of(0, 1) == 0 ? grid.shape.back() : one_of(1, 4));
            draw_axis(grid.shape.back(), drawn.selection.box, static_cast<std::size_t>(axis));
        }
        grid.strides = strides(grid.chunk_shape, grid.item_bytes);
        const auto& count = drawn.selection.box.count;
        const Numbers counts(count.begin(), count.begin() + dimensions);
        const Numbers in_memory =
            one_of(0, 1) == 0 ? c_strides(counts, grid.item_bytes) : strides(counts, grid.item_bytes);
        std::copy(in_memory.begin(), in_memory.end(), drawn.selection.memory_strides.begin());
        drawn.limits = {.gap_bytes = static_cast<std::uint64_t>(one_of(0, 2) == 0 ? one_of(1, 40) : 0),
                        .straight_bytes = static_cast<std::uint64_t>(one_of(1, 60)),
                        .scratch_bytes = static_cast<std::uint64_t>(one_of(9, 80)),
                        .allow_straight = one_of(0, 3) != 0};
        return drawn;
    }

  private:
    std::int64_t one_of(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
    }
    void draw_axis(std::int64_t extent, ElementBox& box, std::size_t axis) {
        box.start[axis] = one_of(0, 1) == 0 ? 0 : one_of(0, extent - 1);
        box.step[axis] = one_of(0, 2) == 0 ? one_of(1, 6) : 1;
        const std::int64_t most = (extent - 1 - box.start[axis]) / box.step[axis] + 1;
        box.count[axis] = one_of(0, 1) == 0 ? most : one_of(1, most);
    }
    // Of dimensions in any order, with gaps between them now and then.
    Numbers strides(const Numbers& shape, std::uint64_t item_bytes) {
        Numbers order(shape.size()), found(shape.size());
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random_);
        auto inside = static_cast<std::int64_t>(item_bytes);
        for (const std::int64_t axis : order) {
            const auto at = static_cast<std::size_t>(axis);
            if (one_of(0, 3) == 0) inside += one_of(0, 30);
            found[at] = inside;
            inside *= shape[at];
        }
        return found;
    }
    std::mt19937 random_;
};

Numbers cell_of(const SelectedPart& part) {
    return {part.cell.begin(), part.cell.begin() + static_cast<long>(part.dimensions)};
}

// Calls take(index) for all indices of a grid.
void for_each_index(const Numbers& counts, const std::function<void(const Numbers&)>& take) {
    if (std::find(counts.begin(), counts.end(), 0) != counts.end()) return;
    Numbers at(counts.size());
    while (true) {
        take(at);
        std::size_t axis = counts.size();
        while (axis > 0 && ++at[axis - 1] == counts[axis - 1]) at[--axis] = 0;
        if (axis == 0) return;
    }
}

Places by_elements(const Drawn& drawn) {
    const StoredGrid& grid = drawn.grid;
    const Selection& selection = drawn.selection;
    Places places;
    const Numbers counts(selection.box.count.begin(),
                         selection.box.count.begin() + static_cast<long>(grid.shape.size()));
    for_each_index(counts, [&](const Numbers& at) {
        Numbers cell(at.size());
        std::int64_t in_chunk = 0, in_memory = 0;
        for (std::size_t axis = 0; axis < at.size(); ++axis) {
            const std::int64_t element = selection.box.start[axis] + at[axis] * selection.box.step[axis];
            cell[axis] = element / grid.chunk_shape[axis];
            in_chunk += element % grid.chunk_shape[axis] * grid.strides[axis];
            in_memory += at[axis] * selection.memory_strides[axis];
        }
        for (std::int64_t byte = 0; byte < static_cast<std::int64_t>(grid.item_bytes); ++byte) {
            places[in_memory + byte] = {cell, in_chunk + byte};
        }
    });
    return places;
}

void add_item(std::int64_t memory, const std::pair<Numbers, std::int64_t>& from, std::int64_t bytes, Places& places) {
    for (std::int64_t byte = 0; byte < bytes; ++byte) {
        const bool is_new = places.emplace(memory + byte, std::pair(from.first, from.second + byte)).second;
        EXPECT_TRUE(is_new) << "a byte is given twice";
    }
}

void add_span(const Numbers& cell, const ChunkSpan& span, const Drawn& drawn, Places& places) {
    const auto first = static_cast<std::int64_t>(span.chunk_offset);
    if (span.straight) {
        EXPECT_TRUE(drawn.limits.allow_straight);
        add_item(span.memory_offset, {cell, first}, static_cast<std::int64_t>(span.bytes), places);
        return;
    }
    EXPECT_LE(span.bytes, drawn.limits.scratch_bytes);
    Numbers counts;
    std::uint64_t wanted = drawn.grid.item_bytes;
    for (const BoxDimension& one : span.grid) {
        counts.push_back(static_cast<std::int64_t>(one.extent));
        wanted *= one.extent;
    }
    if (drawn.limits.gap_bytes == 0) EXPECT_EQ(wanted, span.bytes) << "bytes between the wanted ones are moved";
    for_each_index(counts, [&](const Numbers& at) {
        std::int64_t in_chunk = first, memory = span.memory_offset;
        for (std::size_t axis = 0; axis < at.size(); ++axis) {
            in_chunk += at[axis] * span.grid[axis].source_stride;
            memory += at[axis] * span.grid[axis].destination_stride;
        }
        const auto item = static_cast<std::int64_t>(drawn.grid.item_bytes);
        EXPECT_LE(in_chunk + item, first + static_cast<std::int64_t>(span.bytes)) << "an element lies behind its span";
        add_item(memory, {cell, in_chunk}, item, places);
    });
}

Places by_spans(const Drawn& drawn) {
    Places places;
    for_each_part(drawn.grid, drawn.selection, [&](const SelectedPart& part) {
        cut_part(part, drawn.grid.item_bytes, drawn.limits,
                 [&](const ChunkSpan& span) { add_span(cell_of(part), span, drawn, places); });
    });
    return places;
}

TEST(Selection, gives_each_element_its_place_once) {
    Drawing drawing(7);
    for (int turn = 0; turn < test::some_of(3000); ++turn) {
        const Drawn drawn = drawing.draw();
        check_grid(drawn.grid);
        check_box(drawn.grid, drawn.selection.box);
        ASSERT_EQ(by_spans(drawn), by_elements(drawn)) << turn;
        ASSERT_FALSE(HasFailure()) << turn;
    }
}

// Spans of a whole selection: (offset, bytes, whether straight).
std::vector<std::tuple<std::uint64_t, std::uint64_t, bool>> spans_of(const StoredGrid& grid, const Selection& selection,
                                                                     const CutLimits& limits) {
    std::vector<std::tuple<std::uint64_t, std::uint64_t, bool>> found;
    for_each_part(grid, selection, [&](const SelectedPart& part) {
        cut_part(part, grid.item_bytes, limits,
                 [&](const ChunkSpan& span) { found.emplace_back(span.chunk_offset, span.bytes, span.straight); });
    });
    return found;
}

TEST(Selection, of_a_whole_dataset_is_one_straight_span) {
    const StoredGrid grid{{1000, 1000}, {1000, 1000}, {4000, 4}, 4};
    Selection all;
    all.box.count = {1000, 1000};
    all.memory_strides = {4000, 4};
    const auto spans = spans_of(grid, all, {.gap_bytes = 4095, .straight_bytes = 1 << 18, .scratch_bytes = 1 << 20});
    ASSERT_EQ(spans.size(), 1u);
    EXPECT_EQ(spans.front(), std::tuple(0u, 4'000'000u, true));
}

TEST(Selection, with_small_gaps_is_moved_with_them_in_spans_that_fit) {
    const StoredGrid records{{100'000}, {100'000}, {64}, 4};
    Selection all;
    all.box.count = {100'000};
    all.memory_strides = {4};
    const auto spans = spans_of(records, all, {.gap_bytes = 4095, .straight_bytes = 1 << 18, .scratch_bytes = 1 << 20});
    EXPECT_EQ(spans.size(), 7u);
}

TEST(Selection, of_few_elements_takes_no_time_for_the_chunks_between_them) {
    const std::int64_t extent = std::int64_t{1} << 60;
    const StoredGrid grid{{extent}, {1}, {1}, 1};
    Selection two;
    two.box.count = {2};
    two.box.step = {extent - 1};
    two.memory_strides = {1};
    EXPECT_EQ(spans_of(grid, two, {.scratch_bytes = 1}).size(), 2u);
}

ErrorCode code_of(const StoredGrid& grid) {
    try {
        check_grid(grid);
    } catch (const Error& error) {
        return error.code();
    }
    return ErrorCode::ok;
}

TEST(Selection, numbers_that_describe_no_dataset_are_refused) {
    const std::int64_t large = std::int64_t{1} << 40;
    EXPECT_EQ(code_of({{4, 4}, {2, 2}, {8, 4}, 4}), ErrorCode::ok);
    const StoredGrid wrong[] = {{{4}, {4}, {4}, 0},
                                {{4}, {0}, {4}, 4},
                                {{-1}, {1}, {4}, 4},
                                {{4, 4}, {4}, {16, 4}, 4},
                                {{4, 4}, {4, 4}, {12, 4}, 4},
                                {{large, large}, {1, 1}, {4, 4}, 4},
                                {{4}, {4}, {std::int64_t{1} << 62}, 4},
                                {Numbers(17, 1), Numbers(17, 1), Numbers(17, 1), 1}};
    for (const StoredGrid& one : wrong) EXPECT_EQ(code_of(one), ErrorCode::invalid_argument);
}

TEST(Selection, a_box_that_leaves_the_dataset_is_refused) {
    const StoredGrid grid{{10}, {10}, {4}, 4};
    const auto is_refused = [&](std::int64_t start, std::int64_t count, std::int64_t step) {
        ElementBox box;
        box.start[0] = start, box.count[0] = count, box.step[0] = step;
        try {
            check_box(grid, box);
        } catch (const Error&) {
            return true;
        }
        return false;
    };
    const std::int64_t last = std::numeric_limits<std::int64_t>::max();
    EXPECT_FALSE(is_refused(0, 10, 1));
    EXPECT_FALSE(is_refused(9, 1, last));
    EXPECT_FALSE(is_refused(10, 0, 1));
    EXPECT_FALSE(is_refused(0, 4, 3));
    EXPECT_TRUE(is_refused(0, 5, 3));
    EXPECT_TRUE(is_refused(0, 11, 1));
    EXPECT_TRUE(is_refused(10, 1, 1));
    EXPECT_TRUE(is_refused(-1, 1, 1));
    EXPECT_TRUE(is_refused(0, -1, 1));
    EXPECT_TRUE(is_refused(0, 1, 0));
    EXPECT_TRUE(is_refused(0, last, last));
}

}  // namespace
}  // namespace penstock::data
