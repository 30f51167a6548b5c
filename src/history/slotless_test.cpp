// Tests of what a history without slots promises besides what all do: history_test.cpp has those of both.
// Tried with them: slotless.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <string>
#include <vector>

#include "history/history_rig.hpp"
#include "penstock/history.hpp"

namespace penstock {
namespace {

class SlotlessHistory : public HistoryTest {
  protected:
    HistoryOptions options(const std::string& format = "hdf5") const {
        HistoryOptions made = HistoryTest::options();
        made.format = format;
        return made;
    }
};

constexpr std::uint64_t kNumbers = 100'000;

TEST_P(SlotlessHistory, a_field_that_lies_as_the_file_has_it_takes_no_memory) {
    History history(context_, name_, options());
    history.define({.name = "T", .dimensions = {"x"}, .shape = {kNumbers}});
    const Buffer values = field(std::vector<float>(kNumbers, 7.0F));
    history.put("T", values.data());
    const std::vector<PathShare> moved = history.facts().last.paths;
    ASSERT_EQ(moved.size(), 1U) << "before put() has returned";
    EXPECT_EQ(moved[0].bytes, kNumbers * sizeof(float));
    history.end_step(0);
    EXPECT_EQ(history.facts().steps_published, 1U) << "before end_step() has returned";
    EXPECT_EQ(history.facts().slot_bytes, 0U);
    EXPECT_EQ(history.facts().wait_seconds, 0);
    history.close();
    EXPECT_EQ(read<float>("T"), std::vector<float>(kNumbers, 7.0F));
}

TEST_P(SlotlessHistory, others_take_memory_of_the_largest_of_them) {
    History history(context_, name_, options("cdf5"));  // of the other order of bytes
    for (const auto& [name, count] : {std::pair{"T", kNumbers}, std::pair{"U", kNumbers / 2}}) {
        history.define({.name = name, .dimensions = {std::string("of ") + name}, .shape = {count},
                        .source_dtype = "float64"});
    }
    const Buffer values = field(std::vector<double>(kNumbers, 7.0));
    for (int step = 0; step < 3; ++step) {
        for (const char* name : {"U", "T"}) history.put(name, values.data());
        history.end_step(step);
    }
    EXPECT_EQ(history.facts().slot_bytes, kNumbers * sizeof(float));
    history.close();
    EXPECT_EQ(read<float>("T"), std::vector<float>(3 * kNumbers, 7.0F));
    EXPECT_EQ(read<float>("U"), std::vector<float>(3 * (kNumbers / 2), 7.0F));
}

TEST_P(SlotlessHistory, a_step_that_is_dropped_is_written_anew) {
    History history(context_, name_, options());
    history.define({.name = "T", .dimensions = {"x"}, .shape = {3}});
    const Buffer wrong = field(std::vector<float>{9, 9, 9}), right = field(std::vector<float>{1, 2, 3});
    for (int step = 0; step < 3; ++step) {
        history.put("T", wrong.data());
        history.drop_step();
        history.put("T", right.data());
        history.end_step(step);
    }
    history.close();
    EXPECT_EQ(read<float>("T"), (std::vector<float>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

TEST_P(SlotlessHistory, the_put_that_cannot_be_written_says_so_and_all_after_it) {
    HistoryOptions wanted = options("cdf5");
    wanted.transfer.path = PathKind::buffered;
    History history(context_, name_, wanted);
    history.define({.name = "T", .dimensions = {"x"}, .shape = {kNumbers}});
    const Buffer values = field(std::vector<float>(kNumbers, 7.0F));
    history.put("T", values.data());
    history.end_step(0);
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{kNumbers * sizeof(float) + 100'000, limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    std::string told;
    try {
        history.put("T", values.data());
    } catch (const Error& error) {
        told = error.what();
    }
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
    EXPECT_NE(told.find("step 2, variable 'T'"), std::string::npos) << told;
    for (const auto& call : {+[](History& one) { one.end_step(1); }, +[](History& one) { one.close(); }}) {
        try {
            call(history);
            ADD_FAILURE() << "it was forgotten";
        } catch (const Error& error) {
            EXPECT_EQ(error.what(), told);
        }
    }
    EXPECT_EQ(read<float>("T"), std::vector<float>(kNumbers, 7.0F));
}

TEST_P(SlotlessHistory, nothing_is_compressed) {
    HistoryOptions wanted = options();
    wanted.compression.name = "gzip";
    expect_refusal("open history: a history without slots", [&] { History(context_, name_, wanted); });
    History history(context_, name_, options());
    HistoryVariable variable{.name = "T", .dimensions = {"x"}, .shape = {kNumbers}};
    variable.compression = wanted.compression;
    history.define(variable);
    const Buffer values = field(std::vector<float>(kNumbers));
    expect_refusal("without slots", [&] { history.put("T", values.data()); });
}

INSTANTIATE_TEST_SUITE_P(Memory, SlotlessHistory,
                         testing::Values(HistoryKind(MemoryKind::device, 0), HistoryKind(MemoryKind::system, 0)),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace penstock
