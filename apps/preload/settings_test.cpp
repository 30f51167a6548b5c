// Tests of what the environment asks for, and of which files globs mean.
#include "preload/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace preload {
namespace {

TEST(Settings, globs_mean_the_last_part_of_a_name_or_with_a_slash_all_of_it) {
    Settings settings;
    EXPECT_TRUE(is_matched(settings, "anything"));
    settings.match = "*.nc\n/data/*/x.bin";
    EXPECT_TRUE(is_matched(settings, "out.nc"));
    EXPECT_TRUE(is_matched(settings, "/some/where/out.nc"));
    EXPECT_TRUE(is_matched(settings, "/data/1/x.bin"));
    EXPECT_FALSE(is_matched(settings, "x.bin"));
    EXPECT_FALSE(is_matched(settings, "/other/1/x.bin"));
    EXPECT_FALSE(is_matched(settings, "out.nc4"));
}

TEST(Settings, the_environment_says_what_is_asked_for) {
    ::setenv("PENSTOCK_RUN_REPORT", "r.json", 1);
    ::setenv("PENSTOCK_RUN_DURABLE", "1", 1);
    ::setenv("PENSTOCK_RUN_MATCH", "", 1);
    ::setenv("PENSTOCK_RUN_LEAST_BYTES", "1048576", 1);
    ::setenv("PENSTOCK_RUN_PROCESS", "17", 1);
    Settings settings;
    read_settings(settings);
    EXPECT_STREQ(settings.report, "r.json");
    EXPECT_TRUE(settings.durable);
    EXPECT_EQ(settings.match, nullptr);
    EXPECT_EQ(settings.limits.least_bytes, kMiB);
    EXPECT_EQ(settings.first_process, 17);
}

TEST(Settings, a_program_that_writes_over_its_environment_changes_no_setting) {
    ::setenv("PENSTOCK_RUN_REPORT", "r.json", 1);
    ::setenv("PENSTOCK_RUN_MATCH", "*.nc", 1);
    Settings settings;
    read_settings(settings);
    for (const char* name : {"PENSTOCK_RUN_REPORT", "PENSTOCK_RUN_MATCH"}) ::getenv(name)[0] = 'X';
    EXPECT_STREQ(settings.report, "r.json");
    EXPECT_TRUE(is_matched(settings, "out.nc"));
    ::unsetenv("PENSTOCK_RUN_MATCH");
}

}  // namespace
}  // namespace preload
