// What the CF conventions say of a time: the words for its units, and its calendar.
#pragma once

#include <string>

namespace penstock::history {

// Each throws Error{invalid_argument} of a word that the conventions do not have.
void check_calendar(const std::string& calendar);
// As "seconds since 2000-01-01 00:00:00", where hours and less may be left out, and a time zone may follow. Empty: the
// time has no units.
void check_time_units(const std::string& units);

}  // namespace penstock::history
