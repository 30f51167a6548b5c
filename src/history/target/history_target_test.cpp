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

TEST_P(HistoryTargets, are_named_once_by_what_they_refuse) {
    int refused = 0;
    for (const char* format : {"netcdf4", "hdf5", "cdf2", "cdf5", "zarr"}) {
        HistoryOptions wanted = options();
        wanted.format = format;
        History history(context_, name_, wanted);
        history.define(six());
        try {
            history.define(six());
            ADD_FAILURE() << format;
        } catch (const Error& error) {
            EXPECT_EQ(std::string(error.what()).rfind("create " + name_ + ": variable 'T' is given twice", 0), 0u)
                << error.what();
        }
        try {
            history.define_constant({.name = "c", .dimensions = {"x"}, .shape = {3}, .dtype = "complex64",
                                     .values = std::vector<std::byte>(24)});
            history.begin();
        } catch (const Error& error) {
            ++refused;
            EXPECT_EQ(error.info().file, name_) << format << ": " << error.what();
        }
    }
    EXPECT_GE(refused, 3) << "netCDF has no complex numbers";
}

// The emulated device has a limit of its own memory alone.
INSTANTIATE_TEST_SUITE_P(Memory, HistoryTargets, testing::Values(MemoryKind::device));

}  // namespace
}  // namespace penstock
