// Tests of histories of several processes, which are two histories of this one: the file is that of a history alone.
// Tried with them: agreement, parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "history/history_rig.hpp"
#include "penstock/history.hpp"

namespace penstock {
namespace {

// The box of one of two processes: rows of y, or columns of x.
HistoryVariable part_of(std::uint32_t process, bool by_columns, std::uint64_t rows_of_first) {
    const std::uint64_t first = process == 0 ? 0 : rows_of_first;
    const std::uint64_t all = by_columns ? 4 : 3, count = process == 0 ? rows_of_first : all - rows_of_first;
    HistoryVariable variable{.name = "T", .dimensions = {"z", "y", "x"}, .shape = {2, 3, 4}};
    variable.global_shape = variable.shape;
    variable.start = {0, 0, 0};
    variable.shape[by_columns ? 2 : 1] = count;
    variable.start[by_columns ? 2 : 1] = first;
    return variable;
}

class SharedHistoryTest : public HistoryTest {
  protected:
    std::string bytes(const std::string& name) const {
        std::ifstream file(name, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    // Element (z, y, x) of a step is 1000 step + 12 z + 4 y + x, in the box of a variable.
    Buffer box(const HistoryVariable& variable, int step) const {
        std::vector<float> values;
        for (std::uint64_t z = 0; z < variable.shape[0]; ++z) {
            for (std::uint64_t y = 0; y < variable.shape[1]; ++y) {
                for (std::uint64_t x = 0; x < variable.shape[2]; ++x) {
                    const std::uint64_t at = 12 * z + 4 * (variable.start[1] + y) + variable.start[2] + x;
                    values.push_back(static_cast<float>(1000 * step) + static_cast<float>(at));
                }
            }
        }
        values.resize(std::max<std::size_t>(values.size(), 1));  // an empty box has a pointer too
        return field(values);
    }

    History open(const std::string& name, const std::string& format, std::uint32_t process, std::uint32_t processes) {
        HistoryOptions wanted = options();
        wanted.format = format;
        wanted.process = process;
        wanted.processes = processes;
        History history(context_, name, wanted);
        HistoryVariable level{.name = "level", .dimensions = {"z"}, .shape = {2}};
        level.statistic = HistoryStatistic::mean;
        history.define(level);
        return history;
    }

    void put(History& history, const HistoryVariable& variable, int step, float level) {
        const Buffer values = box(variable, step), levels = field(std::vector<float>{level, level + 1});
        history.put("T", values.data());
        history.put("level", levels.data());
        history.end_step(step);
    }

    void write_alone(const std::string& name, const std::string& format) {
        History history = open(name, format, 0, 1);
        HistoryVariable whole = part_of(0, false, 3);
        whole.global_shape.clear();
        const std::vector<std::uint64_t> start = std::exchange(whole.start, {});
        history.define(whole);
        whole.start = start;
        for (int step = 1; step <= 70; ++step) put(history, whole, step, static_cast<float>(step));
        history.close();
    }
};

TEST_P(SharedHistoryTest, TwoProcessesMakeTheFileThatOneMakes) {
    for (const std::string format : {"cdf5", "cdf2", "netcdf4", "hdf5"}) {
        const std::string alone = folder_.file(format + ".alone"), shared = folder_.file(format + ".shared");
        write_alone(alone, format);
        for (const auto& [by_columns, of_first] : {std::pair{false, 1}, std::pair{true, 3}, std::pair{false, 3}}) {
            const std::array parts{part_of(0, by_columns, static_cast<std::uint64_t>(of_first)),
                                   part_of(1, by_columns, static_cast<std::uint64_t>(of_first))};
            std::array both{open(shared, format, 0, 2), open(shared, format, 1, 2)};
            both[0].define(parts[0]);
            both[1].define(parts[1]);
            EXPECT_EQ(both[0].digest(), both[1].digest());
            both[0].begin();
            both[1].begin();
            for (int step = 1; step <= 70; ++step) {
                put(both[1], parts[1], step, -1.0F);  // the level of process 1 is not written
                put(both[0], parts[0], step, static_cast<float>(step));
                if (step % 7 != 0) continue;  // steps are published some at once, too
                for (History& one : both) one.wait();
                for (History& one : both) one.publish(static_cast<std::uint64_t>(step));
            }
            for (History& one : both) one.close();
            EXPECT_TRUE(bytes(shared) == bytes(alone)) << format << ", " << by_columns << ", " << of_first;
        }
    }
}

TEST_P(SharedHistoryTest, AFileIsWholeWhereNoProcessWritesTheLastElements) {
    History history = open(name_, "cdf5", 0, 1);
    const HistoryVariable part = part_of(0, false, 1);  // a row of three
    history.define(part);
    put(history, part, 1, 0);
    history.close();
    const std::vector<float> found = read<float>("T");
    ASSERT_EQ(found.size(), 24U);
    EXPECT_EQ(found[3], 1003);
    EXPECT_EQ(found[12], 1012);
}

TEST_P(SharedHistoryTest, AStepIsSeenWhenAllHaveWrittenItAndNotBefore) {
    std::array both{open(name_, "cdf5", 0, 2), open(name_, "cdf5", 1, 2)};
    const std::array parts{part_of(0, false, 1), part_of(1, false, 1)};
    both[0].define(parts[0]);
    both[1].define(parts[1]);
    both[0].begin();
    both[1].begin();
    put(both[0], parts[0], 1, 0);
    both[0].wait();
    EXPECT_EQ(both[0].facts().steps_written, 1U);
    EXPECT_EQ(both[1].facts().steps_written, 0U);
    EXPECT_EQ(shape("T")[0], 0);
    expect_refusal("0 are written here", [&] { both[1].publish(1); });
    expect_refusal("not published", [&] { both[0].close(); });
    HistoryVariable other = part_of(1, false, 1);
    other.global_shape[2] = 5;
    History differs = open(name_, "cdf5", 1, 2);
    differs.define(other);
    EXPECT_NE(differs.digest(), both[1].digest());
    other.start[1] = 2;
    expect_refusal("elements from 2 on, of 3", [&] { open(name_, "cdf5", 1, 2).define(other); });
    expect_refusal("process 2 of 2", [&] { open(name_, "cdf5", 2, 2); });
    expect_refusal("one process writes the file", [&] { open(name_, "cdf5", 0, 1).publish(0); });
}

TEST_P(SharedHistoryTest, BoxesWithGapsAndBoxesThatOverlapAreRefused) {
    // Rows of process 0, and the first row and the rows of process 1, of three.
    for (const auto& [rows, first, count] : {std::array{1, 1, 2}, std::array{1, 2, 1}, std::array{2, 1, 2}}) {
        std::array both{open(name_, "cdf5", 0, 2), open(name_, "cdf5", 1, 2)};
        HistoryVariable other = part_of(1, false, 1);
        other.start[1] = static_cast<std::uint64_t>(first);
        other.shape[1] = static_cast<std::uint64_t>(count);
        both[0].define(part_of(0, false, static_cast<std::uint64_t>(rows)));
        both[1].define(other);
        const std::uint64_t sum = both[0].coverage()[0] + both[1].coverage()[0];
        for (History& one : both) one.coverage()[0] = sum;
        const bool divides = rows == first && first + count == 3;
        if (divides) {
            for (History& one : both) one.begin();
        } else {
            for (History& one : both) expect_refusal("of 'T' leave gaps, or overlap", [&] { one.begin(); });
        }
    }
}

TEST_P(SharedHistoryTest, GapsThatAreMeantAreAllowed) {
    HistoryOptions wanted = options();
    wanted.processes = 2;
    wanted.may_have_gaps = true;
    History history(context_, name_, wanted);
    history.define(part_of(0, false, 1));
    wanted.may_have_gaps = false;
    History other(context_, name_, wanted);
    other.define(part_of(0, false, 1));
    EXPECT_NE(history.digest(), other.digest()) << "processes that differ in it would not go on together";
    EXPECT_TRUE(history.coverage().empty());
    history.begin();
    expect_refusal("the history has begun", [&] { history.coverage(); });
}

// The other processes end it too: what this one hears of an older step afterwards is told by the next one.
TEST_P(SharedHistoryTest, AStepThatWasCheckedEndsWhateverIsHeardMeanwhile) {
    if (GetParam() != MemoryKind::device || GetParam().slots == 0) GTEST_SKIP() << "nothing holds the first step up";
    constexpr std::uint64_t kBytes = 64 << 20;
    bool was_checked = false;
    for (int work = 8; work <= 128 && !was_checked; work *= 4) {
        const std::unique_ptr<Stream> model = context_.device().make_stream();
        const Buffer values = context_.allocate(kBytes, MemoryKind::device);
        HistoryOptions wanted = options();
        wanted.format = "zarr";
        History history(context_, name_, wanted);
        history.define({.name = "T", .dimensions = {"x"}, .shape = {1000}});
        history.use_stream(reinterpret_cast<std::uintptr_t>(model->native_handle()));
        history.begin();
        std::filesystem::remove_all(name_);  // no step can be written
        for (int i = 0; i < work; ++i) model->fill(values.data(), values.bytes(), i);
        history.put("T", values.data());
        history.end_step(1);
        history.put("T", values.data());
        try {
            history.check_step(2);
            was_checked = true;
        } catch (const Error&) {
            continue;  // the first step was quicker
        }
        EXPECT_THROW(history.wait(), Error);
        EXPECT_NO_THROW(history.end_step(2));
        EXPECT_EQ(history.facts().steps_ended, 2U);
        EXPECT_THROW(history.put("T", values.data()), Error);
        EXPECT_THROW(history.check_step(3), Error);
    }
    EXPECT_TRUE(was_checked);
}

TEST_P(SharedHistoryTest, WhatIsPutAfterACheckIsInTheStep) {
    History history = open(name_, "cdf5", 0, 1);
    const Buffer one = field(std::vector<float>{1, 1}), five = field(std::vector<float>{5, 5});
    const Buffer three = field(std::vector<float>{3, 3});
    history.put("level", one.data());
    history.check_step(1);
    history.put("level", three.data());
    expect_refusal("no number", [&] { history.check_step(std::numeric_limits<double>::quiet_NaN()); });
    history.check_step(1);
    history.put("level", five.data());
    history.end_step(1);
    history.put("level", three.data());
    history.check_step(2);
    history.drop_step();
    expect_refusal("was not put", [&] { history.end_step(2); });
    history.put("level", one.data());
    history.check_step(2);
    history.check_step(2);
    history.end_step(2);
    history.close();
    expect_refusal("is closed", [&] { history.end_step(2); });
    EXPECT_EQ(read<float>("level"), (std::vector<float>{3, 3, 1, 1}));
}

INSTANTIATE_TEST_SUITE_P(Memory, SharedHistoryTest, with_and_without_slots(),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace penstock
