// libcufile writes a log to the current directory before any setting can stop it. The probe must leave no such log.
#include <gtest/gtest.h>

#include <filesystem>

#include "path/cufile/cufile_rig.hpp"
#include "path/cufile/probe.hpp"

namespace penstock::path {
namespace {

TEST(CuFileLog, is_left_nowhere_by_the_probe_unless_the_user_has_said_where) {
    const std::filesystem::path before = std::filesystem::current_path();
    const std::filesystem::path folder = testing::TempDir() + "penstock_cufile_log";
    std::filesystem::create_directory(folder);
    std::filesystem::current_path(folder);
    {
        const Behaviour logs("logs");
        const std::vector<std::string> arguments{"--library", FAKE_CUFILE, "--cuda-library", FAKE_LIBCUDA};
        EXPECT_EQ(run_probe(CUFILE_PROBE, arguments, std::chrono::seconds(10)).exit_code, 0);
        EXPECT_TRUE(std::filesystem::is_empty("."));
        const Variable named("CUFILE_LOGFILE_PATH", "mine.log");
        EXPECT_EQ(run_probe(CUFILE_PROBE, arguments, std::chrono::seconds(10)).exit_code, 0);
        EXPECT_TRUE(std::filesystem::exists("mine.log"));
    }
    std::filesystem::current_path(before);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::path
