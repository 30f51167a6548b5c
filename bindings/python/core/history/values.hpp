// What the functions of _core.History take from Python, and what they give it, as values of the C++ API.
#pragma once

#include "penstock/history.hpp"
#include "python/core/core.hpp"

namespace penstock::python {

HistoryOptions history_options(const nb::kwargs& keywords);
HistoryVariable history_variable(const nb::kwargs& keywords);
HistoryConstant history_constant(const nb::kwargs& keywords);
// `attribute`: (name, type, value), whose type is empty for text, and whose value is text or a list of numbers.
HistoryAttribute history_attribute(const nb::tuple& attribute);
// All members of HistoryPreset, whose axes are tuples.
HistoryPreset history_preset(const nb::kwargs& keywords);
nb::dict facts_to_dict(const HistoryFacts& facts);

}  // namespace penstock::python
