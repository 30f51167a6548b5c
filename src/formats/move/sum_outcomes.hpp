// Adds the outcome of one transfer to that of a larger job, so that the job has evidence as a transfer has.
#pragma once

#include "penstock/outcome.hpp"

namespace penstock::formats {

// Bytes and the error are left to the caller. Counters of the process and of the page cache are kept of one transfer
// alone: transfers overlap, so those of several cannot be summed.
void add_outcome(Outcome& sum, const Outcome& part);

}  // namespace penstock::formats
