// The files of SCALE-RM on its cartesian grid, as definitions of a history: coordinates of cells and faces with their
// place in the domain, attributes of the file, and of fields by the dimensions that they have. Plain values: no file.
#pragma once

#include "history/layout.hpp"
#include "penstock/history.hpp"

namespace penstock::history {

// Adds to what the caller defined, and replaces nothing of it. Throws Error{invalid_argument} of another layout, and of
// numbers that make no grid.
void add_scale(Definitions& all, const HistoryPreset& preset, const HistoryOptions& options);

}  // namespace penstock::history
