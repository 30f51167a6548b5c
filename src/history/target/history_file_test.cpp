// Histories and the name of their file: others who write it are refused, and a name that is lost is told.
#include "history/target/history_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "history/history_rig.hpp"
#include "os/fd.hpp"
#include "penstock/history.hpp"

namespace penstock {
namespace {

class HistoryFileTest : public HistoryTest {
  protected:
    HistoryOptions options_of(const char* format) const {
        HistoryOptions made = options();
        made.format = format;
        return made;
    }

    static void write_first_step(History& history, const Buffer& values) {
        history.define({.name = "T", .dimensions = {"x"}, .shape = {2}});
        history.put("T", values.data());
        history.end_step(1);
        history.wait();
    }
};

TEST_P(HistoryFileTest, ReadersShareTheFileAndWritersAreRefused) {
    for (const char* format : {"cdf5", "netcdf4", "hdf5"}) {
        History history(context_, name_, options_of(format));
        const Buffer values = field(std::vector<float>{1, 2});
        write_first_step(history, values);
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
        History history(context_, name_, options_of(format));
        const Buffer values = field(std::vector<float>{1, 2});
        write_first_step(history, values);
        ASSERT_EQ(::unlink(name_.c_str()), 0);
        expect_refusal("the file was removed", [&] {
            history.put("T", values.data());
            history.end_step(2);
            history.wait();
        });
    }
}

TEST_P(HistoryFileTest, WhatIsDefinedAfterADigestIsInTheNextOneAndInTheFile) {
    for (const char* format : {"cdf5", "netcdf4"}) {
        History history(context_, name_, options_of(format));
        history.define({.name = "T", .dimensions = {"x"}, .shape = {2}});
        const std::uint64_t before = history.digest();
        EXPECT_EQ(history.digest(), before) << format;
        history.define({.name = "U", .dimensions = {"x"}, .shape = {2}});
        EXPECT_NE(history.digest(), before) << format;
        const std::vector<float> numbers{1, 2};
        const Buffer values = field(numbers);
        for (const char* name : {"T", "U"}) history.put(name, values.data());
        history.end_step(1);
        history.close();
        EXPECT_EQ(read<float>("U"), numbers) << format;
    }
}

// Values of one byte are filled up to a multiple of four in classic netCDF, and fields that follow each other are
// written as one: what the memory of a slot had before must not come with them.
TEST_P(HistoryFileTest, WhatLiesBetweenFieldsIsZero) {
    constexpr std::uint64_t kOdd = 131'073, kFilled = 131'076;
    {
        const Buffer before = context_.allocate(2 * kFilled + 64, MemoryKind::device);  // kept, and given again
        std::memset(before.data(), 0xff, before.bytes());
    }
    HistoryOptions wanted = options_of("cdf5");
    wanted.slots = 1;
    History history(context_, name_, wanted);
    for (const char* name : {"A", "B"}) {
        history.define({.name = name, .dimensions = {"x"}, .shape = {kOdd}, .dtype = "int8"});
    }
    const Buffer values = field(std::vector<std::int8_t>(kOdd, 7));
    for (const char* name : {"A", "B"}) history.put(name, values.data());
    history.end_step(1);
    history.close();
    std::ifstream file(name_, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const std::string filled = std::string(kOdd, 7) + std::string(kFilled - kOdd, 0);
    EXPECT_NE(bytes.find(filled + filled), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Kinds, HistoryFileTest, testing::Values(MemoryKind::system, MemoryKind::device));

}  // namespace
}  // namespace penstock
