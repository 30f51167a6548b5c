// Names that definitions of a history have in common ("history/definitions/defined_names.hpp"): each definition is
// checked when it comes, against all that came before, and one that is refused leaves the history as it was.
#include <chrono>
#include <vector>

#include "history/history_rig.hpp"

namespace penstock {
namespace {

class HistoryDefinitions : public HistoryTest {
  protected:
    static HistoryVariable variable(const std::string& name, std::uint64_t length, const std::string& dimension = "x") {
        return {.name = name, .dimensions = {dimension}, .shape = {length}};
    }
    static HistoryConstant constant(const std::string& name, std::uint64_t length, const std::string& dimension) {
        HistoryConstant made{.name = name, .dimensions = {dimension}, .shape = {length}};
        made.values.resize(length * sizeof(double));
        return made;
    }
};

INSTANTIATE_TEST_SUITE_P(Host, HistoryDefinitions, testing::Values(MemoryKind::system));

TEST_P(HistoryDefinitions, ANameIsOneDefinition) {
    History history(context_, name_, options());
    history.define(variable("T", 5));
    history.define_constant(constant("x", 5, "x"));
    expect_refusal("variable 'T' is given twice", [&] { history.define(variable("T", 5)); });
    expect_refusal("variable 'T' is given twice", [&] { history.define_constant(constant("T", 5, "x")); });
    expect_refusal("variable 'x' is given twice", [&] { history.define(variable("x", 5)); });
    history.define(variable("U", 5));
}

TEST_P(HistoryDefinitions, ADimensionHasOneLength) {
    History history(context_, name_, options());
    history.define(variable("T", 5));
    expect_refusal("'U' has 6 elements along 'x', others have 5", [&] { history.define(variable("U", 6)); });
    expect_refusal("'c' has 6 elements along 'x', others have 5",
                   [&] { history.define_constant(constant("c", 6, "x")); });
    history.define(variable("U", 6, "y"));
    expect_refusal("'c' has 5 elements along 'y', others have 6",
                   [&] { history.define_constant(constant("c", 5, "y")); });
    history.define_constant(constant("c", 5, "x"));
}

TEST_P(HistoryDefinitions, TimesBeginAtADayOfTheirCalendar) {
    struct Case {
        const char* units;
        const char* calendar;
        const char* why;  // null: taken
    };
    const std::vector<Case> cases{
        {"seconds since 2000-02-30", "standard", "has 29 days in month 2 of year 2000"},
        {"days since 2000-04-31", "standard", "has 30 days in month 4"},
        {"days since 1900-02-29", "standard", "has 28 days in month 2"},
        {"days since 2001-02-29", "noleap", "has 28 days in month 2"},
        {"days since 2000-01-31", "360_day", "has 30 days in month 1"},
        {"days since 0000-01-01", "standard", "has no year 0"},
        {"days since 1582-10-10", "gregorian", "goes from 1582-10-04 to 1582-10-15"},
        {"months since 2000-01-01", "standard", "how long a month is"},
        {"years since 2000-01-01", "360_day", "how long a year is"},
        {"days since 1900-02-29", "julian", nullptr},
        {"days since 1500-02-29", "standard", nullptr},
        {"days since 0000-01-01", "proleptic_gregorian", nullptr},
        {"days since 1582-10-10", "proleptic_gregorian", nullptr},
        {"days since 2001-02-29", "all_leap", nullptr},
        {"days since 2001-02-30", "360_day", nullptr},
        {"months since 2000-01-01", "360_day", nullptr},
    };
    for (const Case& one : cases) {
        HistoryOptions wanted = options();
        wanted.time_units = one.units;
        wanted.calendar = one.calendar;
        if (one.why == nullptr) {
            EXPECT_NO_THROW(History(context_, name_, wanted)) << one.units;
        } else {
            expect_refusal(one.why, [&] { History(context_, name_, wanted); });
        }
    }
}

// The file that is there stays until a put is taken.
TEST_P(HistoryDefinitions, AFirstPutThatIsRefusedLeavesTheOlderHistory) {
    const Buffer values = field(std::vector<float>{1, 2, 3, 4, 5});
    const auto opened = [&] {
        History made(context_, name_, options());
        made.define({.name = "T", .dimensions = {"x"}, .shape = {5}, .source_dtype = "float32"});
        return made;
    };
    History old = opened();
    old.put("T", values.data());
    old.end_step(1);
    old.close();
    History history = opened();
    expect_refusal("no variable 'V' is defined", [&] { history.put("V", values.data()); });
    expect_refusal("null pointer", [&] { history.put("T", nullptr); });
    const std::vector<std::int64_t> strides{4, 4};
    expect_refusal("1 dimensions and 2 strides", [&] { history.put("T", values.data(), strides); });
    EXPECT_EQ(shape("T")[0], 1);
    history.put("T", values.data());
    EXPECT_EQ(shape("T")[0], 0);
}

TEST_P(HistoryDefinitions, BoundsOfIntervalsHaveTheirNameAndDimension) {
    HistoryVariable mean = variable("M", 5);
    mean.statistic = HistoryStatistic::mean;
    HistoryVariable other = mean;
    other.name = "N";
    History first(context_, name_, options());
    first.define(mean);
    first.define(other);
    expect_refusal("'time_bnds' is given twice", [&] { first.define(variable("time_bnds", 5)); });
    expect_refusal("3 elements along 'nv', others have 2", [&] { first.define(variable("c", 3, "nv")); });
    first.define(variable("c", 2, "nv"));

    History second(context_, folder_.file("second.nc"), options());
    second.define(variable("time_bnds", 5));
    expect_refusal("'time_bnds' is given twice", [&] { second.define(mean); });

    History third(context_, folder_.file("third.nc"), options());
    third.define(variable("c", 3, "nv"));
    expect_refusal("2 elements along 'nv', others have 3", [&] { third.define(mean); });
    third.define(variable("d", 5));
}

TEST_P(HistoryDefinitions, AttributesAreCheckedWhereTheyAreSet) {
    History history(context_, name_, options());
    history.define(variable("T", 5));
    history.define_constant(constant("x", 5, "x"));
    for (const char* owner : {"T", "x", ""}) {
        history.set_attribute({.name = "units", .text = "K"}, owner);
        history.set_attribute({.name = "units", .text = "m"}, owner);
        expect_refusal("has the name", [&] { history.set_attribute({.name = "a/b", .text = "K"}, owner); });
        expect_refusal("of dtype int32",
                       [&] { history.set_attribute({.name = "n", .dtype = "int32", .numbers = {0.5}}, owner); });
    }
    const Buffer data = field(std::vector<float>(5));
    history.put("T", data.data());
    history.end_step(1);
    history.close();
    EXPECT_EQ(shape("T"), (std::vector<std::int64_t>{1, 5}));
}

// Some milliseconds. Were each definition compared with all before it, a minute.
TEST_P(HistoryDefinitions, ThousandsOfVariablesAreDefinedAtOnce) {
    History history(context_, name_, options());
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 3000; ++i) {
        const std::string name = "V" + std::to_string(i);
        history.define(variable(name, 5));
        history.set_attribute({.name = "units", .text = "K"}, name);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

}  // namespace
}  // namespace penstock
