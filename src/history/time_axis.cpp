// See time_axis.hpp.
#include "history/time_axis.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/faults.hpp"
#include "penstock/error.hpp"

namespace penstock::history {
namespace {

using formats::shown;

constexpr std::array kTimeUnits{"microsecond", "microseconds", "us",    "millisecond", "milliseconds", "msec",    "ms",
                                "second",      "sec",          "s",     "seconds",     "minute",       "minutes", "min",
                                "hour",        "hours",        "hr",    "h",           "day",          "days",    "d",
                                "week",        "weeks",        "month", "months",      "year",         "years"};

bool is_digit(char one) noexcept { return one >= '0' && one <= '9'; }

// Takes a number of 1 to `digits` digits, which is from `least` to `most`.
bool take_number(std::string_view& rest, std::size_t digits, int least, int most) noexcept {
    int value = 0;
    std::size_t count = 0;
    for (; count < digits && count < rest.size() && is_digit(rest[count]); ++count)
        value = 10 * value + rest[count] - '0';
    rest.remove_prefix(count);
    return count != 0 && value >= least && value <= most;
}

bool take(std::string_view& rest, char wanted) noexcept {
    if (rest.empty() || rest.front() != wanted) return false;
    rest.remove_prefix(1);
    return true;
}

bool take_date(std::string_view& rest) noexcept {
    if (!take(rest, '-')) take(rest, '+');
    return take_number(rest, 6, 0, 999'999) && take(rest, '-') && take_number(rest, 2, 1, 12) && take(rest, '-') &&
           take_number(rest, 2, 1, 31);
}

// hh, hh:mm, hh:mm:ss or hh:mm:ss.fraction
bool take_time(std::string_view& rest) noexcept {
    if (!take_number(rest, 2, 0, 24)) return false;
    if (!take(rest, ':')) return true;
    if (!take_number(rest, 2, 0, 59)) return false;
    if (!take(rest, ':')) return true;
    if (!take_number(rest, 2, 0, 60)) return false;
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

bool is_since(std::string_view rest) noexcept {
    if (!take_date(rest)) return false;
    if (rest.empty()) return true;
    if (!take(rest, 'T') && !take(rest, ' ')) return is_zone(rest);
    const std::string_view before = rest;
    return take_time(rest) ? is_zone(rest) : is_zone(before);
}

}  // namespace

void check_calendar(const std::string& calendar) {
    constexpr std::array<const char*, 10> known{
        "standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "365_day", "360_day", "all_leap",
        "366_day",  "none"};
    if (std::find(known.begin(), known.end(), calendar) != known.end()) return;
    throw Error(ErrorCode::invalid_argument, "open history", "there is no calendar " + shown(calendar),
                "use standard, proleptic_gregorian, julian, noleap, 360_day, all_leap or none");
}

void check_time_units(const std::string& units) {
    constexpr std::string_view since = " since ";
    if (units.empty()) return;
    const std::size_t at = units.find(since);
    const std::string unit = units.substr(0, at);
    const bool is_known =
        std::any_of(kTimeUnits.begin(), kTimeUnits.end(), [&](const char* one) { return unit == one; });
    if (at != std::string::npos && is_known && is_since(std::string_view(units).substr(at + since.size()))) return;
    throw Error(ErrorCode::invalid_argument, "open history", "the units of the time are " + shown(units),
                "give them as 'seconds since 2000-01-01 00:00:00', or none");
}

}  // namespace penstock::history
