// What the CF conventions say of a time: the words for its units, its calendar, and how a file has it.
#pragma once

#include <string>
#include <vector>

#include "history/layout.hpp"
#include "penstock/history.hpp"

namespace penstock::history {

// The version that a history follows. 1.8 is the last one that all checkers know.
inline constexpr const char* kConventions = "CF-1.8";

// Whether the file names the conventions by itself: it has no times of theirs without units.
bool says_conventions(const std::vector<HistoryAttribute>& of_file, const HistoryOptions& options);

// The first variable of the schema, and with bounds the second one. `told`: attributes of the caller; throws
// Error{invalid_argument} of one that the history writes by itself.
void add_time(HistoryLayout& layout, const HistoryOptions& options, const std::vector<HistoryAttribute>& told);

// Each throws Error{invalid_argument} of a word that the conventions do not have.
void check_calendar(const std::string& calendar);
// As "seconds since 2000-01-01 00:00:00", where hours and less may be left out, and a time zone may follow. The day is
// one that the calendar has. Empty: the time has no units.
void check_time_units(const std::string& units, const std::string& calendar);

}  // namespace penstock::history
