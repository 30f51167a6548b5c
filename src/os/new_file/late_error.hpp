// Write errors that the kernel reports only on request, because the page cache could not be written back.
#pragma once

#include "os/system.hpp"

namespace penstock::os {

// Returns the errno of a write to the file behind `fd` that failed after it was accepted, or 0.
//
// For network and FUSE file systems this sends the cached bytes first and waits, because only then a full quota shows.
// Local file systems reserve the space before a write returns, so for them this only asks for errors that have already
// occurred. This does not make bytes durable: fsync does.
int late_error(System& system, int fd, bool local) noexcept;

}  // namespace penstock::os
