// What has the name of a history while another is to take it.
#include "history/target/history_target.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include "history/history_rig.hpp"
#include "os/fd.hpp"

namespace penstock {
namespace {

class HistoryTargets : public HistoryTest {};

HistoryVariable six() { return {.name = "T", .dimensions = {"y", "x"}, .shape = {2, 3}}; }

// Until it goes, the process has no more of a resource than this.
class LowLimit {
  public:
    LowLimit(__rlimit_resource resource, rlim_t most) : resource_(resource) {
        ::getrlimit(resource_, &before_);
        const rlimit low{most, before_.rlim_max};
        ::setrlimit(resource_, &low);
    }
    ~LowLimit() { ::setrlimit(resource_, &before_); }
    LowLimit(const LowLimit&) = delete;
    LowLimit& operator=(const LowLimit&) = delete;

  private:
    __rlimit_resource resource_;
    rlimit before_{};
};

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

std::uint64_t address_space() {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

class HistoryTargetsKeep : public HistoryTargets {
  protected:
    // The bytes of the data of the older history, which the test looks for again.
    std::string older(const std::string& format) {
        name_ = folder_.file("kept." + format);
        HistoryOptions wanted = options();
        wanted.format = format;
        History made(context_, name_, wanted);
        made.define(six());
        made.put("T", field(std::vector<float>{1, 2, 3, 4, 5, 6}).data());
        made.end_step(0);
        made.close();
        return data();
    }
    std::string data() const {
        namespace fs = std::filesystem;
        std::string file = name_;
        for (const char* part : {"/T/c.0.0.0", "/T.raw"}) {
            if (fs::exists(name_ + part)) file += part;
        }
        std::ifstream in(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    // Of many variables: each has an open file while a step is written.
    History newer(const std::string& format, const std::string& compression) const {
        HistoryOptions wanted = options();
        wanted.format = format;
        wanted.compression.name = compression;
        History made(context_, name_, wanted);
        for (const char* name : {"a", "b", "c", "d"}) {
            made.define({.name = name, .dimensions = {"y", "x"}, .shape = {20, 3}});
        }
        return made;
    }
    // Why the history did not begin where the process has so many descriptors; empty: it did, and wrote the steps.
    // Files of a step before may be open for a moment longer: one step is what has surely room.
    std::string refusal_with(int descriptors, History history, int steps) const {
        const LowLimit few(RLIMIT_NOFILE, static_cast<rlim_t>(descriptors));
        try {
            history.begin();
        } catch (const Error& error) {
            return error.what();
        }
        try {
            for (int step = 0; step < steps; ++step) put_step(history, step);
            history.close();
        } catch (const Error& error) {
            ADD_FAILURE() << "what begins has what its steps take: " << error.what();
        }
        return {};
    }
    void put_step(History& history, double time) const {
        const Buffer values = field(std::vector<float>(60, 1.0F));
        for (const char* name : {"a", "b", "c", "d"}) history.put(name, values.data());
        history.end_step(time);
    }
};

TEST_P(HistoryTargetsKeep, the_older_history_where_there_are_few_descriptors) {
    for (const auto& [format, compression] : {std::pair("zarr", "none"), std::pair("zarr", "gzip"),
                                              std::pair("raw", "none"), std::pair("cdf5", "none")}) {
        const std::string before = older(format);
        const os::UniqueFd lowest(::dup(0));
        int refused = 0;
        for (std::string told = "?"; !told.empty(); ++refused) {
            ASSERT_LT(refused, 80) << format << ": " << told;
            const int steps = std::string(compression) == "none" ? 12 : 1;
            told = refusal_with(lowest.get() + refused, newer(format, compression), steps);
            if (told.empty()) break;
            ASSERT_TRUE(data() == before) << format << ", " << refused << " descriptors: " << told;
            ASSERT_EQ(folder_.entries(), 1u) << "nothing lies beside it: " << told;
        }
        EXPECT_GE(refused, 3) << format;
        std::filesystem::remove_all(name_);
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // both need address space of their own
TEST_P(HistoryTargetsKeep, the_older_history_where_there_is_no_thread_to_write_the_new_one) {
    for (const char* format : {"zarr", "raw", "cdf5", "netcdf4"}) {
        const std::string before = older(format);
        History next = newer(format, "none");
        std::promise<void> end;
        const std::shared_future<void> ended = end.get_future().share();
        std::vector<std::thread> others;  // they take the stacks that ended threads left
        for (int i = 0; i < 8; ++i) others.emplace_back([ended] { ended.wait(); });
        std::string told;
        {
            const LowLimit no_stack(RLIMIT_AS, address_space() + 4 * kMiB);
            try {
                next.begin();
            } catch (const Error& error) {
                told = error.what();
            }
        }
        end.set_value();
        for (std::thread& one : others) one.join();
        EXPECT_NE(told.find("the thread that writes steps"), std::string::npos) << format << ": " << told;
        EXPECT_EQ(data(), before) << format;
        EXPECT_NO_THROW(next.begin()) << "it was left as it was";
        next.close();
        std::filesystem::remove_all(name_);
    }
}
#endif

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
INSTANTIATE_TEST_SUITE_P(Memory, HistoryTargetsKeep, testing::Values(MemoryKind::system));
INSTANTIATE_TEST_SUITE_P(Memory, HistoryTargets, testing::Values(MemoryKind::device));

}  // namespace
}  // namespace penstock
