// See time_axis.hpp.
#include "history/definitions/time_axis.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "formats/create/check_schema.hpp"
#include "formats/faults.hpp"
#include "history/attributes.hpp"
#include "history/target/history_target.hpp"
#include "penstock/error.hpp"

namespace penstock::history {
namespace {

using formats::shown;

constexpr std::array kTimeUnits{"microsecond", "microseconds", "us",    "millisecond", "milliseconds", "msec",    "ms",
                                "second",      "sec",          "s",     "seconds",     "minute",       "minutes", "min",
                                "hour",        "hours",        "hr",    "h",           "day",          "days",    "d",
                                "week",        "weeks",        "month", "months",      "year",         "years"};

bool is_digit(char one) noexcept { return one >= '0' && one <= '9'; }

struct LeastAndMost {
    int least, most;
};

// Takes a number of 1 to `digits` digits, which is in the range.
bool take_number(std::string_view& rest, std::size_t digits, LeastAndMost range, int& found) noexcept {
    std::size_t count = 0;
    for (found = 0; count < digits && count < rest.size() && is_digit(rest[count]); ++count)
        found = 10 * found + rest[count] - '0';
    rest.remove_prefix(count);
    return count != 0 && found >= range.least && found <= range.most;
}

bool take_number(std::string_view& rest, std::size_t digits, int least, int most) noexcept {
    int found = 0;
    return take_number(rest, digits, {least, most}, found);
}

bool take(std::string_view& rest, char wanted) noexcept {
    if (rest.empty() || rest.front() != wanted) return false;
    rest.remove_prefix(1);
    return true;
}

struct Date {
    int year = 0, month = 1, day = 1;
};

bool take_date(std::string_view& rest, Date& found) noexcept {
    const bool is_before = take(rest, '-');
    if (!is_before) take(rest, '+');
    const bool is_date = take_number(rest, 6, {0, 999'999}, found.year) && take(rest, '-') &&
                         take_number(rest, 2, {1, 12}, found.month) && take(rest, '-') &&
                         take_number(rest, 2, {1, 31}, found.day);
    if (is_before) found.year = -found.year;
    return is_date;
}

bool is_mixed(std::string_view calendar) noexcept { return calendar == "standard" || calendar == "gregorian"; }

bool is_leap(const Date& date, std::string_view calendar) noexcept {
    if (calendar == "noleap" || calendar == "365_day") return false;
    if (calendar == "all_leap" || calendar == "366_day" || calendar == "none") return true;
    // The year before 1 is -1 where there is no year 0.
    const int year = date.year < 0 && calendar != "proleptic_gregorian" ? date.year + 1 : date.year;
    if (year % 4 != 0) return false;
    return calendar == "julian" || (is_mixed(calendar) && year < 1582) || year % 100 != 0 || year % 400 == 0;
}

// Why the calendar has no such day; empty: it has.
std::string absence(const Date& date, const std::string& calendar) {
    constexpr std::array kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (date.year == 0 && (is_mixed(calendar) || calendar == "julian")) return "has no year 0";
    if (is_mixed(calendar) && date.year == 1582 && date.month == 10 && date.day > 4 && date.day < 15) {
        return "goes from 1582-10-04 to 1582-10-15";
    }
    int days = kDays[static_cast<std::size_t>(date.month - 1)];
    if (date.month == 2 && is_leap(date, calendar)) days = 29;
    if (calendar == "360_day") days = 30;
    if (date.day <= days) return "";
    return "has " + std::to_string(days) + " days in month " + std::to_string(date.month) + " of year " +
           std::to_string(date.year);
}

// hh, hh:mm, hh:mm:ss or hh:mm:ss.fraction
bool take_time(std::string_view& rest) noexcept {
    if (!take_number(rest, 2, 0, 23)) return false;
    if (!take(rest, ':')) return true;
    if (!take_number(rest, 2, 0, 59)) return false;
    if (!take(rest, ':')) return true;
    if (!take_number(rest, 2, 0, 59)) return false;
    if (!take(rest, '.')) return true;
    while (!rest.empty() && is_digit(rest.front())) rest.remove_prefix(1);
    return true;
}

// Nothing, Z, UTC, GMT, or how far it is from them.
bool is_zone(std::string_view rest) noexcept {
    while (take(rest, ' ')) {
    }
    if (rest.empty() || rest == "Z" || rest == "UTC" || rest == "GMT") return true;
    if (!take(rest, '+') && !take(rest, '-')) return false;
    if (!take_number(rest, 2, 0, 14)) return false;
    take(rest, ':');
    return rest.empty() || (take_number(rest, 2, 0, 59) && rest.empty());
}

bool is_since(std::string_view rest, Date& date) noexcept {
    if (!take_date(rest, date)) return false;
    if (rest.empty()) return true;
    if (!take(rest, 'T') && !take(rest, ' ')) return is_zone(rest);
    const std::string_view before = rest;
    return take_time(rest) ? is_zone(rest) : is_zone(before);
}

// What a history says of its times by itself.
std::vector<formats::NewAttribute> usual_attributes(const HistoryOptions& options, bool has_bounds) {
    std::vector<formats::NewAttribute> made{formats::text_attribute("standard_name", "time")};
    made.push_back(formats::text_attribute("axis", "T"));
    if (!options.time_units.empty()) {
        made.push_back(formats::text_attribute("units", options.time_units));
        made.push_back(formats::text_attribute("calendar", options.calendar));
    }
    if (has_bounds) made.push_back(formats::text_attribute("bounds", "time_bnds"));
    return made;
}

}  // namespace

void add_time(HistoryLayout& layout, const HistoryOptions& options, const std::vector<HistoryAttribute>& told) {
    formats::ElementType number;
    formats::type_named("float64", number);
    layout.schema.dimensions.push_back({"time", 0, true});
    formats::NewVariable time{"time", number, {0}, usual_attributes(options, layout.has_bounds), {}};
    for (const HistoryAttribute& one : told) {
        const std::string what = "attribute " + shown(one.name) + " of the time";
        const auto same = [&](const formats::NewAttribute& other) { return other.name == one.name; };
        if (std::any_of(time.attributes.begin(), time.attributes.end(), same)) {
            refuse(what + " is given, which the history writes by itself", "give units and calendar when you open it");
        }
        time.attributes.push_back(attribute_of("the time", one));
    }
    layout.schema.variables.push_back(std::move(time));
    if (layout.has_bounds) {
        layout.schema.dimensions.push_back({"nv", 2, false});
        layout.schema.variables.push_back({"time_bnds", number, {0, 1}, {}, {}});
    }
    if (!makes_store(options.format) || options.process != 0) return;
    for (std::size_t i = 0; i < layout.schema.variables.size(); ++i) layout.blocks.push_back({i});
}

bool says_conventions(const std::vector<HistoryAttribute>& of_file, const HistoryOptions& options) {
    return !options.time_units.empty() && !has_attribute(of_file, "Conventions");
}

void check_calendar(const std::string& calendar) {
    constexpr std::array<const char*, 10> known{
        "standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "365_day", "360_day", "all_leap",
        "366_day",  "none"};
    if (std::find(known.begin(), known.end(), calendar) != known.end()) return;
    throw Error(ErrorCode::invalid_argument, "open history", "there is no calendar " + shown(calendar),
                "use standard, proleptic_gregorian, julian, noleap, 360_day, all_leap or none");
}

void check_time_units(const std::string& units, const std::string& calendar) {
    constexpr std::string_view since = " since ";
    if (units.empty()) return;
    const auto refuse_units = [&](const std::string& why, const char* advice) {
        throw Error(ErrorCode::invalid_argument, "open history", "the units of the time are " + shown(units) + why,
                    advice);
    };
    const std::size_t at = units.find(since);
    const std::string unit = units.substr(0, at);
    const bool is_known =
        std::any_of(kTimeUnits.begin(), kTimeUnits.end(), [&](const char* one) { return unit == one; });
    Date date;
    if (at == std::string::npos || !is_known || !is_since(std::string_view(units).substr(at + since.size()), date)) {
        refuse_units("", "give them as 'seconds since 2000-01-01 00:00:00', or none");
    }
    const bool is_month = unit == "month" || unit == "months";
    if (unit == "year" || unit == "years" || (is_month && calendar != "360_day")) {
        refuse_units(", and no reader knows how long a " + std::string(is_month ? "month" : "year") + " is",
                     "use days or seconds; months are of the calendar 360_day");
    }
    const std::string why = absence(date, calendar);
    if (!why.empty()) {
        refuse_units(", and the calendar " + calendar + " " + why, "begin at a day of the calendar, or give another");
    }
}

}  // namespace penstock::history
