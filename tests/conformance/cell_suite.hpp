// The part of the Device kit for cells: particles that are sorted into the cells of a grid, and rows that are gathered
// in that order, compared bit for bit with plain loops and a stable sort. Include it beside device_suite.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "conformance/device_suite.hpp"

namespace penstock::conformance {

struct Grid {
    std::array<std::uint64_t, 3> cells{8, 8, 8};
    std::array<double, 3> widths{0.125, 0.125, 0.125};

    std::uint64_t count() const { return cells[0] * cells[1] * cells[2]; }
    std::uint64_t cell_of(const double* at) const {
        std::uint64_t cell = 0;
        for (int i = 0; i < 3; ++i) {
            double along = std::floor(at[i] / widths[i]);
            along = std::max(0.0, std::min(along, static_cast<double>(cells[i] - 1)));
            cell = cell * cells[i] + static_cast<std::uint64_t>(along);
        }
        return cell;
    }
};

// Three numbers of each particle.
using Places = std::vector<double>;

class CellSuite : public DeviceSuite {
  protected:
    template <class Number>
    static std::vector<unsigned char> bytes_of(const std::vector<Number>& numbers) {
        const auto* first = reinterpret_cast<const unsigned char*>(numbers.data());
        return {first, first + numbers.size() * sizeof(Number)};
    }
    template <class Number>
    std::vector<Number> numbers_at(const Memory& from, std::uint64_t count) {
        const auto bytes = to_host(from.data(), count * sizeof(Number));
        std::vector<Number> numbers(count);
        std::memcpy(numbers.data(), bytes.data(), bytes.size());
        return numbers;
    }

    // Sorts on the device. `order`: what it makes of it; null: the places must lie sorted.
    template <class Number>
    CellsFound found(const Grid& grid, const Places& places, std::vector<std::uint32_t>* order) {
        const std::vector<Number> numbers(places.begin(), places.end());
        const std::uint64_t particles = places.size() / 3;
        const Memory positions = memory(MemoryKind::device, numbers.size() * sizeof(Number) + 1);
        const Memory into = memory(MemoryKind::device, particles * 4 + 4);
        if (particles != 0) to_device(positions.data(), bytes_of(numbers));
        CellSort sort{positions.data(), particles, sizeof(Number) == 8, grid.cells, grid.widths, nullptr};
        if (order != nullptr) sort.order = reinterpret_cast<std::uint32_t*>(into.data());
        CellsFound made = stream_->sort_cells(sort);
        if (order != nullptr && particles != 0) *order = numbers_at<std::uint32_t>(into, particles);
        return made;
    }

    // The places as the device sees them, in the order of a stable sort by cell.
    template <class Number>
    static std::vector<std::uint32_t> expected_order(const Grid& grid, Places& places) {
        for (double& one : places) one = static_cast<double>(static_cast<Number>(one));
        std::vector<std::uint32_t> order(places.size() / 3);
        std::iota(order.begin(), order.end(), 0u);
        std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return grid.cell_of(&places[3 * a]) < grid.cell_of(&places[3 * b]);
        });
        return order;
    }

    static void expect_runs(const Grid& grid, const Places& sorted, const std::vector<SortedCell>& runs) {
        ASSERT_EQ(runs.size(), grid.count());
        const double most = std::numeric_limits<double>::max();
        std::vector<SortedCell> expected(grid.count(), SortedCell{0, 0, {most, most, most}, {-most, -most, -most}});
        for (std::uint64_t i = 0; 3 * i < sorted.size(); ++i) {
            SortedCell& run = expected[grid.cell_of(&sorted[3 * i])];
            if (run.count++ == 0) run.first = i;
            for (int d = 0; d < 3; ++d) {
                run.least[d] = std::min(run.least[d], sorted[3 * i + d] + 0.0);
                run.most[d] = std::max(run.most[d], sorted[3 * i + d] + 0.0);
            }
        }
        for (std::size_t cell = 0; cell < runs.size(); ++cell) {
            ASSERT_EQ(runs[cell].first, expected[cell].first) << "cell " << cell;
            ASSERT_EQ(runs[cell].count, expected[cell].count) << "cell " << cell;
            ASSERT_EQ(std::memcmp(&runs[cell], &expected[cell], sizeof(SortedCell)), 0) << "bounds of cell " << cell;
        }
    }

    template <class Number>
    void expect_sorted(const Grid& grid, Places places, const char* what) {
        SCOPED_TRACE(std::string(what) + (sizeof(Number) == 8 ? ", float64" : ", float32"));
        const std::vector<std::uint32_t> expected = expected_order<Number>(grid, places);
        std::vector<std::uint32_t> order;
        const CellsFound made = found<Number>(grid, places, &order);
        ASSERT_EQ(made.first_bad, CellsFound::kNone);
        ASSERT_TRUE(order == expected);
        Places sorted;
        for (const std::uint32_t i : order) sorted.insert(sorted.end(), &places[3 * i], &places[3 * i] + 3);
        expect_runs(grid, sorted, made.runs);
        const CellsFound counted = found<Number>(grid, sorted, nullptr);
        ASSERT_EQ(counted.first_unsorted, CellsFound::kNone);
        expect_runs(grid, sorted, counted.runs);
    }
    void expect_sorted(const Grid& grid, const Places& places, const char* what) {
        expect_sorted<double>(grid, places, what);
        expect_sorted<float>(grid, places, what);
    }

    static Places random_places(std::uint64_t particles, double low, double high) {
        std::mt19937_64 random(particles);
        std::uniform_real_distribution<double> uniform(low, high);
        Places places(3 * particles);
        for (double& one : places) one = uniform(random);
        return places;
    }
};

TEST_P(CellSuite, particles_of_any_number_are_sorted) {
    for (const std::uint64_t particles : {0u, 1u, 2u, 31u, 33u, 257u, 5000u, 70'001u}) {
        expect_sorted({}, random_places(particles, 0, 1), std::to_string(particles).c_str());
        if (HasFatalFailure()) return;
    }
}

TEST_P(CellSuite, particles_outside_of_the_box_belong_to_the_nearest_cell) {
    expect_sorted({}, random_places(3000, -1, 2), "outside");
    const double most = std::numeric_limits<float>::max();
    expect_sorted({}, {most, -most, 0.5, -most, most, most, 0.99, 0.01, 0.5, 1, 1, 1}, "far outside");
}

TEST_P(CellSuite, crowded_cells_and_equal_places_keep_their_order) {
    Places places = random_places(20'000, 0.4, 0.6);
    for (std::size_t i = 0; i < places.size(); i += 7) places[i] *= 1e-3;
    expect_sorted({}, places, "clustered");
    expect_sorted({}, random_places(20'000, 0.26, 0.37), "one cell");
    expect_sorted({}, Places(3000, 0.125), "equal, on an edge");
}

TEST_P(CellSuite, grids_of_any_shape_have_their_cells) {
    expect_sorted({{1, 1, 1}, {1, 1, 1}}, random_places(1000, 0, 1), "one cell");
    expect_sorted({{4096, 1, 1}, {1.0 / 4096, 1, 1}}, random_places(9000, 0, 1), "4096 along the first");
    expect_sorted({{1, 2, 4096}, {1, 0.5, 1.0 / 4096}}, random_places(9000, 0, 1), "4096 along the last");
    expect_sorted({{3, 5, 7}, {1.0 / 3, 0.2, 1.0 / 7}}, random_places(9000, 0, 1), "odd numbers");
}

TEST_P(CellSuite, bounds_have_no_negative_zero) {
    std::vector<std::uint32_t> order;
    const CellsFound made = found<double>({}, {-0.0, 0.0, -0.0, 0.0, -0.0, -0.0}, &order);
    ASSERT_EQ(made.runs.size(), 512u);
    for (int d = 0; d < 3; ++d) {
        EXPECT_FALSE(std::signbit(made.runs[0].least[d])) << d;
        EXPECT_FALSE(std::signbit(made.runs[0].most[d])) << d;
    }
}

TEST_P(CellSuite, the_first_place_that_is_not_finite_is_named) {
    const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    for (const double wrong : {nan, inf, -inf}) {
        for (int d = 0; d < 3; ++d) {
            Places places = random_places(4000, 0, 1);
            places[3 * 3999] = wrong;
            places[3 * 2500 + static_cast<std::size_t>(d)] = wrong;
            std::vector<std::uint32_t> order;
            const CellsFound made = found<double>({}, places, &order);
            EXPECT_EQ(made.first_bad, 2500u);
            EXPECT_TRUE(made.runs.empty());
            EXPECT_EQ(std::bit_cast<std::uint64_t>(made.bad_position[d]), std::bit_cast<std::uint64_t>(wrong));
            EXPECT_EQ(found<float>({}, places, &order).first_bad, 2500u);
        }
    }
}

TEST_P(CellSuite, the_first_particle_out_of_order_is_named_with_both_cells) {
    Places places(3 * 4000, 0.3);
    places[3 * 2000] = 0.9;
    places[3 * 3000] = 0.1;
    const CellsFound made = found<double>({}, places, nullptr);
    EXPECT_EQ(made.first_unsorted, 2001u);
    EXPECT_EQ(made.first_bad, CellsFound::kNone);
    EXPECT_EQ(made.cell_before, Grid{}.cell_of(&places[3 * 2000]));
    EXPECT_EQ(made.cell, Grid{}.cell_of(&places[3 * 2001]));
    places[3 * 2001 + 1] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(found<double>({}, places, nullptr).first_bad, 2001u) << "what is nowhere comes first";
    places[3 * 2001 + 1] = 0.3;
    places[3 * 2002 + 1] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(found<double>({}, places, nullptr).first_unsorted, 2001u);
}

TEST_P(CellSuite, grids_that_make_no_sense_are_refused) {
    for (const Grid& grid : {Grid{{0, 1, 1}, {1, 1, 1}}, Grid{{4097, 1, 1}, {1, 1, 1}}, Grid{{1, 1, 1}, {1, 0, 1}},
                             Grid{{4096, 4096, 4096}, {1, 1, 1}}}) {
        EXPECT_THROW(found<double>(grid, {}, nullptr), Error);
    }
    std::uint32_t order = 0;  // nothing is written to it
    EXPECT_THROW(stream_->sort_cells({nullptr, std::uint64_t{1} << 32, true, {1, 1, 1}, {1, 1, 1}, &order}), Error);
}

// Rows of each width that a kernel knows and of others, at each alignment; bytes around them stay.
TEST_P(CellSuite, rows_of_any_width_are_gathered) {
    constexpr std::uint64_t kRows = 700, kSourceRows = 900, kRoom = 64;
    std::vector<std::uint32_t> order(kRows);
    std::mt19937_64 random(1);
    for (std::uint32_t& one : order) one = static_cast<std::uint32_t>(random() % kSourceRows);
    const Memory by = memory(MemoryKind::device, kRows * 4);
    to_device(by.data(), bytes_of(order));
    for (const std::uint64_t row : {1u, 2u, 3u, 4u, 8u, 12u, 16u, 20u, 24u, 32u, 40u, 48u, 100u}) {
        for (const std::uint64_t skew : {0u, 1u, 4u, 8u}) {
            const auto source = random_bytes(kSourceRows * row + skew, row);
            auto expected = random_bytes(kRows * row + kRoom, 77);
            const Memory from = memory(MemoryKind::device, source.size());
            const Memory to = memory(MemoryKind::device, expected.size());
            to_device(from.data(), source);
            to_device(to.data(), expected);
            for (std::uint64_t i = 0; i < kRows; ++i) {
                std::memcpy(&expected[skew + i * row], &source[skew + order[i] * row], row);
            }
            stream_->gather({to.data() + skew, from.data() + skew, reinterpret_cast<std::uint32_t*>(by.data()), kRows,
                             kSourceRows, row});
            ASSERT_TRUE(to_host(to.data(), expected.size()) == expected) << row << " bytes at " << skew;
        }
    }
}

}  // namespace penstock::conformance
