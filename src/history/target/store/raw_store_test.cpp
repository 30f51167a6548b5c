// Histories of raw files: each has all steps of a variable, one behind the other, and the index counts those that are
// finished.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "history/history_rig.hpp"
#include "history/layout.hpp"
#include "history/target/history_target.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class RawStores : public HistoryTest {
  protected:
    RawStores() { name_ = folder_.file("history.raw"); }
    HistoryOptions raw(bool durable = false) const {
        HistoryOptions made = options();
        made.format = "raw";
        made.durable = durable;
        return made;
    }
    std::string index() const {
        std::ifstream in(name_ + "/penstock.json", std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    template <typename Number>
    std::vector<Number> numbers(const std::string& variable) const {
        std::vector<Number> found(fs::file_size(name_ + "/" + variable + ".raw") / sizeof(Number));
        std::ifstream in(name_ + "/" + variable + ".raw", std::ios::binary);
        in.read(reinterpret_cast<char*>(found.data()), static_cast<std::streamsize>(found.size() * sizeof(Number)));
        return found;
    }
    bool counts(std::size_t steps) const {
        return index().find("\"steps\":" + std::to_string(steps) + ",") != std::string::npos;
    }
};

TEST_P(RawStores, have_the_steps_of_each_variable_one_behind_the_other) {
    for (const bool durable : {false, true}) {
        History history(context_, name_, raw(durable));
        history.define({.name = "T", .dimensions = {"y", "x"}, .shape = {2, 3}, .halo_low = {1, 0},
                        .source_dtype = "float64", .file_dimensions = {"x", "y"},
                        .attributes = {{.name = "units", .text = "K"}}});
        history.define({.name = "w", .dimensions = {"x"}, .shape = {3}, .dtype = "float64",
                        .statistic = HistoryStatistic::mean});
        history.define_constant({.name = "n", .dtype = "int32", .values = std::vector<std::byte>(4)});
        for (int step = 0; step < 23; ++step) {
            std::vector<double> all(9);
            for (std::size_t i = 0; i < 9; ++i) all[i] = 100 * step + static_cast<double>(i);
            history.put("T", field(all).data());
            history.put("w", field(std::vector<double>{0.0, 1.0, 2.0}).data());
            history.put("w", field(std::vector<double>{2.0, 1.0, 0.0}).data());
            history.end_step(10.0 * (step + 1));
            history.wait();
            ASSERT_TRUE(counts(static_cast<std::size_t>(step) + 1)) << index();
        }
        history.close();
        const std::vector<float> found = numbers<float>("T");
        ASSERT_EQ(found.size(), 23 * 6u) << "and nothing else";
        for (std::size_t step = 0; step < 23; ++step) {
            for (std::size_t x = 0; x < 3; ++x) {
                for (std::size_t y = 0; y < 2; ++y) {
                    ASSERT_EQ(found[6 * step + 2 * x + y], static_cast<float>(100 * step + 3 * (y + 1) + x));
                }
            }
        }
        EXPECT_EQ(numbers<double>("w"), std::vector<double>(69, 1.0));
        const std::vector<double> times = numbers<double>("time"), bounds = numbers<double>("time_bnds");
        EXPECT_EQ(times.at(22), 230.0);
        EXPECT_EQ(bounds.at(44), 220.0);
        EXPECT_EQ(bounds.at(45), 230.0);
        EXPECT_EQ(numbers<std::int32_t>("n"), std::vector<std::int32_t>{0});
        EXPECT_NE(index().find(R"("T":{"file":"T.raw","dtype":"<f4","grows":true,"shape":[3,2],)"
                               R"("dimensions":["time","x","y"],"attributes":{"units":"K"}})"),
                  std::string::npos)
            << index();
        EXPECT_EQ(folder_.entries(), 1u);
    }
}

TEST_P(RawStores, count_no_step_before_its_data_are_there) {
    history::Definitions all;
    all.variables.push_back({.name = "T", .dimensions = {"x"}, .shape = {100}});
    const history::HistoryLayout layout = plan_history(all, raw(), false);
    const auto target = history::make_target(context_, {.name = name_, .format = "raw"}, layout.schema);
    EXPECT_TRUE(counts(0)) << index();
    for (std::size_t step = 0; step < 2; ++step) {
        const auto places = target->reserve({});
        EXPECT_EQ(places[1].offset_bytes, 400 * step);
        target->file(1).write(field(std::vector<float>(100, 2.0F)).view(), places[1].offset_bytes).or_throw();
        target->write_numbers(0, places[0], std::vector<double>{5.0});
        EXPECT_TRUE(counts(step)) << index();
        target->finish();
        target->publish(step + 1);
        EXPECT_TRUE(counts(step + 1)) << index();
    }
    target->close();
}

TEST_P(RawStores, take_the_place_of_older_ones_and_of_nothing_else) {
    const auto begun = [&] {
        History history(context_, name_, raw());
        history.define({.name = "T", .dimensions = {"x"}, .shape = {2}});
        history.begin();
        return history;
    };
    begun().close();
    begun().close();
    fs::remove(name_ + "/penstock.json");
    expect_refusal("it is there, and no store", begun);
    EXPECT_TRUE(fs::exists(name_ + "/T.raw"));
    HistoryOptions packed = raw();
    packed.compression.name = "gzip";
    expect_refusal("the format 'raw' stores no compressed data", [&] { History(context_, name_, packed); });
}

INSTANTIATE_TEST_SUITE_P(Memory, RawStores, with_and_without_slots(),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace penstock
