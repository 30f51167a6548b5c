// Restarts of several processes, which are several restarts of this one: the file is that of one process, byte by byte,
// and any number reads it. Tried with them: block_sums.cpp, boxes.cpp, layout.cpp, writing.cpp.
#include <gtest/gtest.h>

#include <filesystem>

#include "restart/boxes.hpp"
#include "restart/restart_rig.hpp"
#include "support/sanitized.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kParticles = 100'003;  // of 24 bytes: more than two blocks, and rows across their borders
constexpr std::uint64_t kHigh = 3, kWide = 50'001;

// What process p of so many has: rows of particles, and columns of a field.
struct Share {
    std::uint64_t first = 0, count = 0;
};
Share share_of(std::uint64_t all, std::uint32_t process, std::uint32_t processes) {
    const std::uint64_t first = all * process / processes, end = all * (process + 1) / processes;
    return {first, end - first};
}

class PartsTest : public RestartTest {
  protected:
    struct Process {
        Restart restart;
        Buffer particles, columns;
        Share rows, wide;
    };
    Process process(std::uint32_t number, std::uint32_t processes, const std::string& name) const {
        const Share rows = share_of(kParticles, number, processes), wide = share_of(kWide, number, processes);
        Process made{open(number, processes, name), memory(rows.count * 24), memory(kHigh * wide.count * 8), rows,
                     wide};
        made.restart.set_field(
            {"p/x", "float64", {kParticles, 3}, made.particles.data(), {rows.first, 0}, {rows.count, 3}});
        made.restart.set_field(
            {"T", "float64", {kHigh, kWide}, made.columns.data(), {0, wide.first}, {kHigh, wide.count}});
        made.restart.set_attribute(snapshot_scalar("step", 3));
        return made;
    }
    static double particle(std::uint64_t row, std::uint64_t axis) { return static_cast<double>(3 * row + axis) + 0.5; }
    static double column(std::uint64_t z, std::uint64_t x) { return -static_cast<double>(kWide * z + x); }
    template <typename Each>
    static void for_each(Process& of, Each&& each) {
        for (std::uint64_t i = 0; i < 3 * of.rows.count; ++i)
            each(static_cast<double*>(of.particles.data())[i], particle(of.rows.first + i / 3, i % 3));
        for (std::uint64_t z = 0; z < kHigh; ++z)
            for (std::uint64_t x = 0; x < of.wide.count; ++x)
                each(static_cast<double*>(of.columns.data())[z * of.wide.count + x], column(z, of.wide.first + x));
    }
    RestartFacts write(std::uint32_t processes, const std::string& name) const {
        std::vector<Process> all;
        for (std::uint32_t i = 0; i < processes; ++i) {
            all.push_back(process(i, processes, name));
            for_each(all.back(), [](double& value, double wanted) { value = wanted; });
            EXPECT_EQ(all.back().restart.digest(), all[0].restart.digest());
        }
        const std::string part = all[0].restart.begin();
        RestartPart whole;
        for (std::uint32_t i = processes; i-- > 0;) {
            if (i != 0) all[i].restart.begin(part);
            whole.join(all[i].restart.move());
        }
        for (std::uint32_t i = 1; i < processes; ++i) all[i].restart.abandon();
        return all[0].restart.commit(whole);
    }
    std::uint64_t wrong_of(Process& of) const {
        std::uint64_t wrong = 0;
        for_each(of, [&](double value, double wanted) { wrong += value != wanted; });
        return wrong;
    }
};

INSTANTIATE_TEST_SUITE_P(memory, PartsTest, testing::Values(MemoryKind::device, MemoryKind::system),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST_P(PartsTest, so_many_processes_write_the_file_of_one_and_any_number_reads_it) {
    write(1, name_);
    const std::vector<unsigned char> alone = test::read_file(slot(0));
    // The device's sums are those of the host, which has all numbers of processes.
    const std::uint32_t step = GetParam() == MemoryKind::device || test::kSanitized ? 3 : 1;
    for (std::uint32_t writers = 1; writers <= 8; writers += step) {
        const std::string name = folder_.file("restart-of-" + std::to_string(writers));
        write(writers, name);
        EXPECT_TRUE(test::read_file(name + ".0") == alone) << writers;
        for (std::uint32_t readers = 1; readers <= 8; readers += step) {
            for (std::uint32_t number = 0; number < readers; ++number) {
                Process one = process(number, readers, name);
                EXPECT_EQ(one.restart.read().generation, 1U);
                EXPECT_EQ(wrong_of(one), 0U) << writers << " to " << readers;
            }
        }
        std::filesystem::remove(name + ".0");
    }
}

TEST(FieldRuns, of_whole_rows_are_one_and_of_others_as_many_as_there_are_rows) {
    using restart::runs_of;
    EXPECT_EQ(runs_of({{10, 4, 5}, {2, 0, 0}, {3, 4, 5}}, 8).size(), 1U);
    EXPECT_EQ(runs_of({{10, 4, 5}, {2, 1, 0}, {1, 2, 5}}, 8).size(), 1U);
    EXPECT_EQ(runs_of({{}, {}, {}}, 8).size(), 1U);
    EXPECT_EQ(runs_of({{10, 4, 5}, {2, 0, 0}, {3, 4, 0}}, 8).size(), 0U);
    const auto runs = runs_of({{10, 4, 5}, {2, 1, 1}, {2, 2, 3}}, 8);
    ASSERT_EQ(runs.size(), 4U);
    EXPECT_EQ(runs[3].field_offset, ((3 * 4 + 2) * 5 + 1) * 8U);
    EXPECT_EQ(runs[3].memory_offset, 3 * 3 * 8U);
    EXPECT_EQ(runs[3].bytes, 3 * 8U);
}

TEST_P(PartsTest, damage_is_seen_by_the_processes_whose_blocks_it_is_in) {
    write(2, name_);
    std::vector<unsigned char> bytes = test::read_file(slot(0));
    bytes[bytes.size() - 4096 - kHigh * kWide * 8] ^= 1;  // in the last block of the particles, or the first of T
    test::write_file(slot(0), bytes);
    std::uint32_t saw = 0;
    for (std::uint32_t number = 0; number < 8; ++number) {
        Process one = process(number, 8, name_);
        ASSERT_TRUE(one.restart.find());
        RestartFacts facts;
        saw += one.restart.read_found(facts).empty() ? 0 : 1;
    }
    EXPECT_GE(saw, 1U);
}

TEST_P(PartsTest, boxes_that_lie_over_each_other_or_leave_a_hole_are_refused) {
    for (const std::uint64_t second : {49, 51}) {
        Buffer a = counting(50, 1), b = counting(50, 1);
        Restart first = open(0, 2), other = open(1, 2);
        first.set_field({"x", "float64", {100}, a.data(), {0}, {50}});
        other.set_field({"x", "float64", {100}, b.data(), {second}, {second == 49 ? 50U : 49U}});
        const std::string part = first.begin();
        other.begin(part);
        RestartPart whole = first.move();
        whole.join(other.move());
        expect_error({"do not have each element of each field once"}, [&] { first.commit(whole); });
        EXPECT_EQ(folder_.entries(), 0U);
    }
}

TEST_P(PartsTest, a_process_that_dies_leaves_the_generations_as_they_were) {
    write(3, name_);
    const std::vector<unsigned char> before = test::read_file(slot(0));
    {
        Process first = process(0, 2, name_), other = process(1, 2, name_);
        other.restart.begin(first.restart.begin());
        other.restart.move();
        EXPECT_EQ(folder_.entries(), 3U) << "a generation, the next one, and the lock of the name";
    }
    EXPECT_EQ(folder_.entries(), 1U);
    EXPECT_TRUE(test::read_file(slot(0)) == before);
    EXPECT_EQ(write(2, name_).generation, 2U);
}

TEST_P(PartsTest, the_digest_tells_layouts_and_attributes_apart_and_boxes_not) {
    Buffer values = memory(800);
    Restart one = open();
    one.set_field({"x", "float64", {100}, values.data()});
    const std::uint64_t digest = one.digest();
    one.set_field({"x", "float64", {100}, values.data(), {10}, {20}});
    EXPECT_EQ(one.digest(), digest);
    one.set_attribute(snapshot_scalar("step", 1));
    const std::uint64_t with_step = one.digest();
    EXPECT_NE(with_step, digest);
    one.set_attribute(snapshot_scalar("step", 2));
    EXPECT_NE(one.digest(), with_step);
    one.set_field({"x", "float32", {100}, values.data()});
    EXPECT_NE(one.digest(), digest);
}

}  // namespace
}  // namespace penstock
