// Errors of writes that the kernel tells only when it is asked: of a page cache that could not be written back.
#pragma once

#include "os/system.hpp"

namespace penstock::os {

// The errno of a write into the file behind `fd` that failed after it was accepted; 0 when none is known.
//
// What file systems of networks and of FUSE hold back is sent first, and waited for, because a full quota shows only
// then. On local ones nothing is written for this: they have the space when a write returns, so only errors that came
// already are told. Stable storage is not promised: that is fsync.
int late_error(System& system, int fd, bool local) noexcept;

}  // namespace penstock::os
