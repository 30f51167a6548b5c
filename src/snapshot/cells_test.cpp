// Cells of SWIFT: tables follow the grid, and those of several processes are those of one. Processes are Snapshots that
// one thread uses in turn. The Python tests compare the tables with the rows that h5py reads.
#include "snapshot/cells.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "penstock/context.hpp"
#include "penstock/error.hpp"
#include "snapshot/sorted/cell_sums_rig.hpp"

namespace penstock {
namespace {

using Positions = std::vector<double>;

const SnapshotCells kGrid{{2, 2, 2}, {10, 10, 10}};

SnapshotPositions of_type(std::uint32_t type, const Positions& at) {
    return {type, "float64", at.data(), at.size() / 3};
}

snapshot::CellCounts counted_on_host(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    static const Context context({.device = "host"});
    return snapshot::count_cells(cells, types, 0, [](std::uint32_t, const CellSort& sort) {
        return context.sort_cells(sort, MemoryKind::system);
    });
}

TEST(SnapshotCellsTest, order_and_tables_follow_the_grid) {
    const Positions at{9, 1, 1, 1, 1, 9, 1, 1, 1}, sorted{1, 1, 1, 1, 1, 9, 9, 1, 1};
    const SnapshotPositions wrong = of_type(0, at), right = of_type(0, sorted);
    EXPECT_EQ(snapshot_cell_order(kGrid, wrong), (std::vector<std::uint64_t>{2, 1, 0}));
    EXPECT_THROW(counted_on_host(kGrid, {&wrong, 1}), Error);
    for (const double nowhere : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        const Positions some{1, 1, 1, 1, nowhere, 1};
        EXPECT_THROW(snapshot_cell_order(kGrid, of_type(0, some)), Error);
    }
    const snapshot::CellCounts counts = counted_on_host(kGrid, {&right, 1});
    EXPECT_EQ(counts.totals, (std::vector<std::int64_t>{1, 0, 1, 1, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(snapshot::cell_datasets(counts, {{{3}}}).datasets.size(), 6U);
}

TEST(SnapshotCellsTest, what_was_counted_is_alike_where_grid_and_types_are) {
    const Positions none, one{1, 1, 1};
    const std::vector<SnapshotPositions> first{of_type(0, none), of_type(3, one)},
        second{of_type(0, one), of_type(3, none)};
    const auto digest = [&](const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
        return snapshot::cell_digest(counted_on_host(cells, types));
    };
    EXPECT_EQ(digest(kGrid, first), digest(kGrid, second));
    EXPECT_NE(digest(kGrid, first), digest(kGrid, {&first[0], 1}));
    EXPECT_NE(digest(kGrid, first), digest({{2, 2, 1}, {10, 10, 10}}, first));
    EXPECT_NE(digest(kGrid, first), digest({{2, 2, 2}, {10, 10, 11}}, first));
}

class CellsOfProcesses : public testing::Test {
  protected:
    CellsOfProcesses() : context_({.device = "host"}) {}

    // Snapshots of so many processes, each with some particles of type 0.
    std::vector<Snapshot> told(const std::string& name, const std::vector<Positions>& parts) const {
        std::vector<std::uint64_t> rows;
        for (const Positions& one : parts) rows.push_back(one.size() / 3);
        std::vector<Snapshot> all;
        for (std::uint32_t i = 0; i < parts.size(); ++i) {
            const SnapshotOptions options{
                .memory = MemoryKind::system, .process = i, .processes = static_cast<std::uint32_t>(parts.size())};
            all.emplace_back(context_, folder_.file(name), options);
            all.back().add_dataset({"PartType0/Coordinates", "float64", {rows[i], 3}, rows});
        }
        return all;
    }

    static std::vector<SnapshotCellSums> counted(std::vector<Snapshot>& all, const std::vector<Positions>& parts) {
        std::vector<SnapshotCellSums> sums;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const SnapshotPositions own = of_type(0, parts[i]);
            sums.push_back(all[i].count_cells(kGrid, {&own, 1}));
        }
        return sums;
    }

    std::vector<unsigned char> written(const std::string& name, const std::vector<Positions>& parts) const {
        std::vector<Snapshot> all = told(name, parts);
        test::put_together(counted(all, parts));
        for (Snapshot& one : all) one.add_counted_cells();
        for (const Snapshot& one : all) EXPECT_EQ(one.digest(), all[0].digest());
        for (Snapshot& one : all) one.begin(&one == &all[0] ? "" : all[0].place());
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i].write({{"PartType0/Coordinates", parts[i].data(), parts[i].size() * sizeof(double)}});
        for (std::size_t i = all.size(); i-- > 0;) all[i].commit();
        return test::read_file(folder_.file(name));
    }

    template <typename Call>
    static void expect_words(const std::string& words, Call&& call) {
        try {
            call();
            ADD_FAILURE() << "not refused: " << words;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find("s.hdf5"), std::string::npos) << error.what();
        }
    }

    test::TempDirectory folder_;
    Context context_;
};

TEST_F(CellsOfProcesses, a_file_of_several_processes_is_that_of_one) {
    const Positions first{1, 1, 1, 2, 3, 4, 1, 1, 9}, second{9, 1, 1, 9, 9, 2, 9, 9, 9};
    Positions both = first;
    both.insert(both.end(), second.begin(), second.end());
    Snapshot alone(context_, folder_.file("alone.hdf5"), {.memory = MemoryKind::system});
    alone.add_dataset({"PartType0/Coordinates", "float64", {6, 3}});
    const SnapshotPositions all = of_type(0, both);
    alone.add_cells(kGrid, {&all, 1});
    alone.write({{"PartType0/Coordinates", both.data(), both.size() * sizeof(double)}});
    const std::vector<unsigned char> wanted = test::read_file(folder_.file("alone.hdf5"));
    EXPECT_EQ(written("s.hdf5", {first, second}), wanted);
    EXPECT_EQ(written("s.hdf5", {{}, first, {}, second, {}}), wanted);
}

TEST_F(CellsOfProcesses, a_cell_of_two_processes_is_refused_and_both_are_named) {
    const std::vector<Positions> parts{{1, 1, 1}, {9, 9, 1}, {9, 9, 2, 9, 9, 9}};
    std::vector<Snapshot> all = told("s.hdf5", parts);
    test::put_together(counted(all, parts));
    for (Snapshot& one : all) {
        expect_words("processes 1 and 2 both have particles of PartType0 in cell 6", [&] { one.add_counted_cells(); });
        expect_words("no particles were counted", [&] { one.add_counted_cells(); });
    }
}

TEST_F(CellsOfProcesses, sums_that_are_not_of_all_are_refused) {
    const std::vector<Positions> parts{{1, 1, 1}, {9, 9, 9}};
    std::vector<Snapshot> all = told("s.hdf5", parts);
    const std::vector<SnapshotCellSums> sums = counted(all, parts);
    expect_words("the cells have 1 particles of PartType0, and all processes 2", [&] { all[0].add_counted_cells(); });
    sums[1].totals[15] = 1;  // the row of the only particle that process 1 has
    expect_words("no process has the particles of PartType0 that cell 7", [&] { all[1].add_counted_cells(); });
    const std::vector<SnapshotCellSums> again = counted(all, parts);
    again[1].extremes[8 * 7 + 6] = 2;
    expect_words("no process has the particles of PartType0 that cell 7", [&] { all[1].add_counted_cells(); });
}

TEST_F(CellsOfProcesses, one_of_several_processes_does_not_add_cells_alone) {
    const std::vector<Positions> parts{{1, 1, 1}, {}};
    std::vector<Snapshot> all = told("s.hdf5", parts);
    const SnapshotPositions own = of_type(0, parts[0]), more = of_type(0, parts[1]);
    expect_words("one process has not all particles", [&] { all[0].add_cells(kGrid, {&own, 1}); });
    expect_words("has 0 particles, and the cells are of 1", [&] { all[1].count_cells(kGrid, {&own, 1}); });
    expect_words("has 1 particles, and the cells are of 0", [&] { all[0].count_cells(kGrid, {&more, 1}); });
    all[0].add_dataset({"PartType1/Coordinates", "float64", {1, 3}});
    const SnapshotPositions other = of_type(1, parts[0]);
    expect_words("tells no rows of each process", [&] { all[0].count_cells(kGrid, {&other, 1}); });
}

}  // namespace
}  // namespace penstock
