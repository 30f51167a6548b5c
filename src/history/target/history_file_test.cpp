// Histories and the name of their file: others who write it are refused, and a name that is lost is told.
#include "history/target/history_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <set>
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

// Processes that define different files are told from each other by it.
TEST(SummingSinkTest, EachBitEachPlaceAndEachLengthMakesAnotherSum) {
    std::set<std::uint64_t> seen;
    const auto sum_of = [](std::uint64_t place, std::vector<std::byte> bytes, int flipped) {
        if (flipped >= 0) bytes[static_cast<std::size_t>(flipped / 8)] ^= std::byte(1 << flipped % 8);
        history::SummingSink sink("sum");
        sink.write(place, bytes);
        return sink.sum();
    };
    const std::vector<std::byte> twenty(20);
    for (int bit = -1; bit < 160; ++bit) EXPECT_TRUE(seen.insert(sum_of(8, twenty, bit)).second) << bit;
    EXPECT_TRUE(seen.insert(sum_of(9, twenty, -1)).second) << "at another place";
    for (std::size_t length = 0; length < 20; ++length) {
        EXPECT_TRUE(seen.insert(sum_of(8, std::vector<std::byte>(length), -1)).second) << length;
    }
    EXPECT_EQ(sum_of(8, twenty, 7), sum_of(8, twenty, 7));
}

INSTANTIATE_TEST_SUITE_P(Kinds, HistoryFileTest, testing::Values(MemoryKind::system, MemoryKind::device));

}  // namespace
}  // namespace penstock
