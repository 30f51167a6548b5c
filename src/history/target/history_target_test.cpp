// What has the name of a history while another is to take it.
#include "history/target/history_target.hpp"

#include <gtest/gtest.h>

#include "history/history_rig.hpp"

namespace penstock {
namespace {

class HistoryTargets : public HistoryTest {};

HistoryVariable six() { return {.name = "T", .dimensions = {"y", "x"}, .shape = {2, 3}}; }

TEST_P(HistoryTargets, keep_the_older_history_where_there_is_no_memory_for_a_new_one) {
    const Context small({.device = "host", .host = {.memory_bytes = 4 * kMiB}});
    for (const char* format : {"cdf2", "cdf5", "zarr"}) {
        HistoryOptions wanted = options();
        wanted.format = format;
        name_ = folder_.file(std::string("kept.") + format);
        const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
        const Buffer values = field(numbers);
        History older(context_, name_, wanted);
        older.define(six());
        older.put("T", values.data());
        older.end_step(0);
        older.close();
        History large(small, name_, wanted);
        large.define({.name = "T", .dimensions = {"z", "y", "x"}, .shape = {1024, 1024, 8}});
        EXPECT_THROW(large.begin(), Error) << format;
        EXPECT_EQ(read<float>("T"), numbers) << format;
    }
}

// The emulated device has a limit of its own memory alone.
INSTANTIATE_TEST_SUITE_P(Memory, HistoryTargets, testing::Values(MemoryKind::device));

}  // namespace
}  // namespace penstock
