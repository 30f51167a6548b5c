// Identifies the machine and the file system, so that a machine profile can be compared with them.
//
// `root` precedes every /proc and /sys path that is read. Tests set it; empty: the real ones.
#pragma once

#include <string>

#include "os/file/file_stat.hpp"
#include "os/limits.hpp"
#include "penstock/profile.hpp"

namespace penstock::os {

// Fills all fields but the device, which the caller knows.
MachineIdentity machine_identity(const Limits& limits, const std::string& root = {});
// Requires: `facts` includes the mount.
PlaceIdentity place_identity(const FileStat& facts, const std::string& root = {});

}  // namespace penstock::os
