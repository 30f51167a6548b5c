// Tests of histories: what readers find in the file, step by step, and what wrong use is told.
// Tried with them: time_axis.
#include "penstock/history.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "context/test_files.hpp"
#include "formats/data_file.hpp"
#include "formats/move/move_dataset.hpp"
#include "history/history_rig.hpp"
#include "penstock/context.hpp"

namespace penstock {
namespace {

std::vector<double> counted(std::size_t count, double first = 0) {
    std::vector<double> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = first + static_cast<double>(i);
    return numbers;
}

// 2 x 3 elements of an array of 5 x 6, with a halo of 1 and 2 rows and of 2 and 1 columns.
HistoryVariable with_halo() {
    HistoryVariable variable{.name = "T", .dimensions = {"y", "x"}, .shape = {2, 3}};
    variable.halo_low = {1, 2};
    variable.halo_high = {2, 1};
    variable.source_dtype = "float64";
    return variable;
}

TEST_P(HistoryTest, EveryStepIsCutConvertedAndReadBack) {
    History history(context_, name_, options());
    history.define(with_halo());
    for (int step = 0; step < 5; ++step) {
        const Buffer values = field(counted(30, 100 * step));
        history.put("T", values.data());
        std::memset(values.data(), 0, values.bytes());  // the caller goes on
        history.end_step(60.0 * step);
    }
    history.close();
    EXPECT_EQ(shape("T"), (std::vector<std::int64_t>{5, 2, 3}));
    const std::vector<float> found = read<float>("T");
    for (std::size_t step = 0; step < 5; ++step) {
        const auto first = static_cast<float>(100 * step);
        const std::vector<float> expected{first + 8, first + 9, first + 10, first + 14, first + 15, first + 16};
        EXPECT_EQ(std::vector<float>(found.begin() + static_cast<std::ptrdiff_t>(6 * step),
                                     found.begin() + static_cast<std::ptrdiff_t>(6 * step + 6)),
                  expected);
    }
    EXPECT_EQ(read<double>("time"), (std::vector<double>{0, 60, 120, 180, 240}));
    EXPECT_EQ(history.facts().steps_published, 5U);
}

TEST_P(HistoryTest, AStepIsSeenWhileTheHistoryIsOpen) {
    History history(context_, name_, options());
    history.define(with_halo());
    const Buffer values = field(counted(30));
    for (std::int64_t step = 0; step < 3; ++step) {
        history.put("T", values.data());
        if (step == 0) {
            EXPECT_EQ(shape("T"), (std::vector<std::int64_t>{0, 2, 3}));
        }
        history.end_step(static_cast<double>(step));
        history.wait();
        EXPECT_EQ(shape("T")[0], step + 1);
    }
}

TEST_P(HistoryTest, TheOrderInTheFileMayBeAnother) {
    History history(context_, name_, options());
    HistoryVariable variable{.name = "T", .dimensions = {"x", "y", "z"}, .shape = {2, 3, 4}};
    variable.dtype = "float64";
    variable.file_dimensions = {"z", "x", "y"};
    history.define(variable);
    const Buffer values = field(counted(24));
    history.put("T", values.data());
    history.end_step(0);
    history.close();
    EXPECT_EQ(shape("T"), (std::vector<std::int64_t>{1, 4, 2, 3}));
    const std::vector<double> found = read<double>("T");
    for (std::size_t z = 0, at = 0; z < 4; ++z) {
        for (std::size_t x = 0; x < 2; ++x) {
            for (std::size_t y = 0; y < 3; ++y, ++at) EXPECT_EQ(found[at], static_cast<double>(x * 12 + y * 4 + z));
        }
    }
}

TEST_P(HistoryTest, StatisticsAreOfWhatWasPutBetweenTwoSteps) {
    History history(context_, name_, options());
    for (const auto& [name, statistic] :
         {std::pair{"mean", HistoryStatistic::mean}, std::pair{"low", HistoryStatistic::minimum},
          std::pair{"high", HistoryStatistic::maximum}}) {
        HistoryVariable variable{.name = name, .dimensions = {"x"}, .shape = {2}};
        variable.statistic = statistic;
        history.define(variable);
    }
    history.define({.name = "now", .dimensions = {"x"}, .shape = {2}});
    for (int step = 0; step < 3; ++step) {
        for (int part = 0; part < 4; ++part) {
            const auto value = static_cast<float>(10 * step + part);
            const Buffer values = field(std::vector<float>{value, -value});
            for (const char* name : {"mean", "low", "high"}) history.put(name, values.data());
            if (part == 3) history.put("now", values.data());
        }
        history.end_step(step + 1);
    }
    history.close();
    EXPECT_EQ(read<float>("mean"), (std::vector<float>{1.5, -1.5, 11.5, -11.5, 21.5, -21.5}));
    EXPECT_EQ(read<float>("low"), (std::vector<float>{0, -3, 10, -13, 20, -23}));
    EXPECT_EQ(read<float>("high"), (std::vector<float>{3, 0, 13, -10, 23, -20}));
    EXPECT_EQ(read<float>("now"), (std::vector<float>{3, -3, 13, -13, 23, -23}));
    EXPECT_EQ(read<double>("time_bnds"), (std::vector<double>{0, 1, 1, 2, 2, 3}));
}

TEST_P(HistoryTest, ConstantsAreInTheFileFromItsFirstMoment) {
    History history(context_, name_, options());
    const std::vector<double> x = counted(3, 0.5);
    HistoryConstant constant{.name = "x", .dimensions = {"x"}, .shape = {3}};
    constant.values.resize(24);
    std::memcpy(constant.values.data(), x.data(), 24);
    history.define_constant(constant);
    history.define({.name = "n", .dimensions = {"x"}, .shape = {3}, .dtype = "int16"});
    const Buffer values = field(std::vector<std::int16_t>{7, -8, 9});
    history.put("n", values.data());
    EXPECT_EQ(read<double>("x"), x);
    history.end_step(1);
    history.close();
    EXPECT_EQ(read<std::int16_t>("n"), (std::vector<std::int16_t>{7, -8, 9}));
}

TEST_P(HistoryTest, BitsThatNobodyNeedsAreRounded) {
    History history(context_, name_, options());
    HistoryVariable variable{.name = "T", .dimensions = {"x"}, .shape = {2}};
    variable.keep_bits = 3;
    history.define(variable);
    const Buffer values = field(std::vector<float>{1.0F + 1.0F / 8 + 1.0F / 64, 1.0F + 3.0F / 16});
    history.put("T", values.data());
    history.end_step(0);
    history.close();
    EXPECT_EQ(read<float>("T"), (std::vector<float>{1.125F, 1.25F}));
}

TEST_P(HistoryTest, ManyStepsGoThroughFewSlots) {
    HistoryOptions wanted = options();
    wanted.slots = 1;
    History history(context_, name_, wanted);
    history.define({.name = "T", .dimensions = {"x"}, .shape = {1000}});
    for (int step = 0; step < 200; ++step) {
        const Buffer values = field(std::vector<float>(1000, static_cast<float>(step)));
        history.put("T", values.data());
        history.end_step(step);
    }
    history.close();
    const std::vector<float> found = read<float>("T");
    ASSERT_EQ(found.size(), 200000U);
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], static_cast<float>(i / 1000));
    EXPECT_EQ(history.facts().slot_bytes, 4000U);
    EXPECT_NE(history.facts().last.plan.find("on the calling thread"), std::string::npos) << "by the thread that waits";
}

// Nothing but the order on its stream keeps a field until it is packed, or of HDF5 until it is written as it lies.
TEST_P(HistoryTest, FieldsOfANamedStreamArePackedInItsOrder) {
    if (GetParam() != MemoryKind::device) GTEST_SKIP() << "arrays of the host have no stream";
    constexpr std::uint64_t kNumbers = 1 << 20;
    const std::unique_ptr<Stream> model = context_.device().make_stream();
    const Buffer values = context_.allocate(kNumbers * sizeof(float), MemoryKind::device);
    for (const char* format : {"cdf5", "hdf5"}) {
        HistoryOptions wanted = options();
        wanted.format = format;
        History history(context_, name_, wanted);
        history.define({.name = "T", .dimensions = {"x"}, .shape = {kNumbers}, .dtype = "int32"});
        history.use_stream(reinterpret_cast<std::uintptr_t>(model->native_handle()));
        for (int step = 0; step < 8; ++step) {
            for (int work = 16; work-- > 0;) model->fill(values.data(), values.bytes(), step + 1 + work);
            history.put("T", values.data());
            model->fill(values.data(), values.bytes(), 0);
            history.end_step(step);
        }
        history.close();
        const std::vector<std::int32_t> found = read<std::int32_t>("T");
        ASSERT_EQ(found.size(), 8 * kNumbers);
        for (std::size_t i = 0; i < found.size(); ++i) {
            ASSERT_EQ(found[i], 0x01010101 * static_cast<std::int32_t>(i / kNumbers + 1)) << i << " of " << format;
        }
    }
    History other(context_, folder_.file("other.nc"), options());
    other.define({.name = "T", .dimensions = {"x"}, .shape = {kNumbers}});
    other.use_stream(77);
    expect_refusal("is no stream of the device host", [&] { other.put("T", values.data()); });
}

// first_put.cpp says it of puts; that an older history stays is in definitions/defined_names_test.cpp.
TEST_P(HistoryTest, WrongUseIsOneLineAndLeavesTheHistoryAsItWas) {
    HistoryOptions wanted = options();
    wanted.format = "grib";
    const auto open = [&] { return History(context_, name_, wanted); };
    expect_refusal("no format 'grib'", [&] { open(); });
    wanted = options();
    wanted.calendar = "mayan";
    expect_refusal("no calendar 'mayan'", [&] { open(); });
    wanted = options();
    for (const char* units :
         {"seconds", "fortnights since 2000-01-01", "seconds since now", "seconds since 2000-13-01", "s since 2000-01",
          "seconds since 2000-01-01 24:00:00", "seconds since 2000-01-01 00:00:00 CET", "days since 2000-01-01x"}) {
        wanted.time_units = units;
        expect_refusal("the units of the time are", [&] { open(); });
    }
    for (const char* units : {"days since 1850-1-1", "hours since 1900-01-01T00:00:00Z", "h since -44-03-15 12",
                              "seconds since 2000-01-01 00:00:00.5 +09:00", "days since 0001-01-01 00:00 UTC"}) {
        wanted.time_units = units;
        EXPECT_NO_THROW(open()) << units;
    }
    wanted = options();
    wanted.slots = 65;
    expect_refusal("65 slots", [&] { open(); });
    wanted = options();

    History history = open();
    expect_refusal("no variable is defined", [&] { history.put("T", &wanted); });
    history.define(with_halo());
    expect_refusal("given twice", [&] { history.define(with_halo()); });
    expect_refusal("others have 2", [&] { history.define({.name = "U", .dimensions = {"y"}, .shape = {3}}); });
    expect_refusal("cannot become float32", [&] {
        history.define({.name = "U", .dimensions = {"y"}, .shape = {2}, .source_dtype = "complex64"});
    });
    expect_refusal("time is added", [&] { history.define({.name = "U", .dimensions = {"time"}, .shape = {2}}); });
    const Buffer values = field(counted(30));
    expect_refusal("nothing was put", [&] { history.end_step(0); });
    expect_refusal("no variable 'V'", [&] { history.put("V", values.data()); });
    expect_refusal("null pointer", [&] { history.put("T", nullptr); });
    history.put("T", values.data());
    expect_refusal("were put already", [&] { history.define({.name = "U", .dimensions = {"y"}, .shape = {2}}); });
    expect_refusal("put already in this step", [&] { history.put("T", values.data()); });
    expect_refusal("no number", [&] { history.end_step(std::numeric_limits<double>::quiet_NaN()); });
    expect_refusal("not later", [&] { history.end_step(-1); });
    history.end_step(10);
    expect_refusal("was not put", [&] { history.end_step(20); });
    history.put("T", values.data());
    expect_refusal("not later", [&] { history.end_step(10); });
    expect_refusal("their step did not end", [&] { history.close(); });
    history.close();  // the second time it does nothing
    expect_refusal("is closed", [&] { history.put("T", values.data()); });
    expect_refusal("is closed", [&] { history.end_step(30); });
    expect_refusal("put " + name_ + ": ", [&] { history.put("T", values.data()); });
    expect_refusal("set attribute " + name_ + ": ", [&] { history.set_attribute({.name = "a", .text = "b"}, "none"); });
    EXPECT_EQ(shape("T")[0], 1);
}

TEST_P(HistoryTest, TwoWritersOfOneFileAreRefused) {
    const Buffer values = field(counted(30));
    History first(context_, name_, options());
    first.define(with_halo());
    first.put("T", values.data());
    History second(context_, name_, options());
    second.define(with_halo());
    expect_refusal("another history", [&] { second.put("T", values.data()); });
    first.end_step(1);
    first.close();
    EXPECT_EQ(shape("T")[0], 1);
    second.put("T", values.data());  // now the name is free
    EXPECT_EQ(shape("T")[0], 0);
}

TEST_P(HistoryTest, AnArrayIsPutWithStridesOfItsOwn) {
    History history(context_, name_, options());
    history.define({.name = "T", .dimensions = {"y", "x"}, .shape = {2, 3}, .dtype = "float64"});
    const Buffer values = field(counted(6));  // 0 1 2 | 3 4 5
    const auto* first = static_cast<const double*>(values.data());
    history.put("T", first + 5, std::vector<std::int64_t>{-24, -8});
    history.end_step(1);
    history.put("T", first, std::vector<std::int64_t>{8, 16});
    history.end_step(2);
    history.put("T", first + 1, std::vector<std::int64_t>{0, 8});
    history.end_step(3);
    expect_refusal("2 dimensions and 1 strides", [&] { history.put("T", first, std::vector<std::int64_t>{8}); });
    expect_refusal("larger than any memory", [&] { history.put("T", first, std::vector<std::int64_t>{1L << 62, 8}); });
    history.close();
    EXPECT_EQ(read<double>("T"), (std::vector<double>{5, 4, 3, 2, 1, 0, 0, 2, 4, 1, 3, 5, 1, 2, 3, 1, 2, 3}));
}

TEST_P(HistoryTest, WhatCannotBeginLeavesNothingAndBeginsLater) {
    const std::string folder = folder_.file("later");
    name_ = folder + "/history.nc";
    History history(context_, name_, options());
    history.define(with_halo());
    const Buffer values = field(counted(30));
    EXPECT_THROW(history.put("T", values.data()), Error);
    std::filesystem::create_directory(folder);
    history.put("T", values.data());
    history.end_step(0);
    history.close();
    EXPECT_EQ(read<float>("T"), (std::vector<float>{8, 9, 10, 14, 15, 16}));
    EXPECT_EQ(history.facts().step_bytes, 6 * sizeof(float) + sizeof(double));
}

// The child has no thread that writes: it must not wait for one.
TEST_P(HistoryTest, AForkedChildIsRefusedAndEnds) {
    auto history = std::make_unique<History>(context_, name_, options());
    history->define(with_halo());
    const Buffer values = field(counted(30));
    history->put("T", values.data());
    const pid_t child = ::fork();
    if (child == 0) {
        int refused = 0;
        for (const bool ends : {true, false}) {
            try {
                ends ? history->end_step(0) : history->close();
            } catch (const Error& error) {
                refused += error.code() == ErrorCode::unsupported ? 1 : 0;
            }
        }
        history.reset();
        ::_exit(refused);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 2);
    history->end_step(1);
    history->close();
    EXPECT_EQ(shape("T")[0], 1);
}

// While it lives, no file of this process may grow beyond so many bytes: as on a full disk.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    }
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, signal_);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;

  private:
    void (*signal_)(int);
    rlimit before_{};
};

// The thread (step_writer.cpp) keeps the error until the next call asks.
TEST_P(HistoryTest, AStepThatFailsIsToldWithItsNumberAndVariable) {
    constexpr std::uint64_t field_bytes = 256 * kKiB;
    HistoryOptions wanted = options();
    wanted.transfer.path = PathKind::buffered;
    History history(context_, name_, wanted);
    for (const char* name : {"T", "U"}) {
        history.define({.name = name, .dimensions = {"x"}, .shape = {field_bytes / 4}});
    }
    const Buffer values = field(std::vector<float>(field_bytes / 4, 1.0F));
    const FileSizeLimit limit(4096 + 3 * (8 + 2 * field_bytes) + 8 + field_bytes + 5000);  // in U of step 4
    std::string told;
    for (int step = 1; step <= 6; ++step) {
        try {
            history.put("T", values.data());
            history.put("U", values.data());
            history.end_step(step);
        } catch (const Error& error) {
            told = error.what();
            break;
        }
    }
    try {
        history.close();
        ADD_FAILURE() << "close() told nothing";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("step 4, variable 'U'"), std::string::npos) << error.what();
        EXPECT_TRUE(told.empty() || told == error.what()) << told;
        EXPECT_EQ(error.info().file, name_);
    }
    EXPECT_EQ(shape("T")[0], 3);
    EXPECT_EQ(read<float>("U"), std::vector<float>(3 * field_bytes / 4, 1.0F));
    EXPECT_EQ(history.facts().steps_published, 3U);
}

TEST_P(HistoryTest, MemoryThatIsNoneOfTheDevicesIsRefused) {
    if (GetParam() != MemoryKind::device) GTEST_SKIP() << "any memory of the host is one";
    History history(context_, name_, options());
    history.define(with_halo());
    const std::vector<double> on_host(30);
    EXPECT_THROW(history.put("T", on_host.data()), Error);
    const Buffer small = field(counted(29));
    EXPECT_THROW(history.put("T", small.data()), Error);
}

TEST_P(HistoryTest, transposes_where_two_dimensions_have_one_name) {
    History history(context_, name_, options());
    history.define({.name = "T", .dimensions = {"y", "x", "x"}, .shape = {2, 3, 3},
                    .file_dimensions = {"x", "y", "x"}});
    std::vector<float> numbers(18);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    history.put("T", field(numbers).data());
    history.end_step(0);
    history.close();
    EXPECT_EQ(read<float>("T"),
              (std::vector<float>{0, 1, 2, 9, 10, 11, 3, 4, 5, 12, 13, 14, 6, 7, 8, 15, 16, 17}));
}

INSTANTIATE_TEST_SUITE_P(Memory, HistoryTest, with_and_without_slots(),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace penstock
