// Histories and the name of their file: others who write it are refused, and a name that is lost is told.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "history/history_rig.hpp"
#include "os/fd.hpp"
#include "penstock/history.hpp"

namespace penstock {
namespace {

using HistoryFileTest = HistoryTest;

TEST_P(HistoryFileTest, ReadersShareTheFileAndWritersAreRefused) {
    for (const char* format : {"cdf5", "netcdf4", "hdf5"}) {
        HistoryOptions made = options();
        made.format = format;
        History history(context_, name_, made);
        history.define({.name = "T", .dimensions = {"x"}, .shape = {2}});
        const Buffer values = field(std::vector<float>{1, 2});
        history.put("T", values.data());
        history.end_step(1);
        history.wait();
        const os::UniqueFd other(::open(name_.c_str(), O_RDWR | O_CLOEXEC));
        EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), -1) << format;
        EXPECT_EQ(::flock(other.get(), LOCK_SH | LOCK_NB), 0) << format;
        ::flock(other.get(), LOCK_UN);
        history.close();
        EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0) << format;
    }
}

TEST_P(HistoryFileTest, AFileThatWasRemovedIsTold) {
    for (const char* format : {"cdf5", "netcdf4", "hdf5"}) {
        HistoryOptions made = options();
        made.format = format;
        History history(context_, name_, made);
        history.define({.name = "T", .dimensions = {"x"}, .shape = {2}});
        const Buffer values = field(std::vector<float>{1, 2});
        history.put("T", values.data());
        history.end_step(1);
        history.wait();
        ASSERT_EQ(::unlink(name_.c_str()), 0);
        expect_refusal("the file was removed", [&] {
            history.put("T", values.data());
            history.end_step(2);
            history.wait();
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, HistoryFileTest, testing::Values(MemoryKind::system, MemoryKind::device));

}  // namespace
}  // namespace penstock
