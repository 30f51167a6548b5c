// Which machine and which file system this is, in the words a machine profile is compared by.
//
// `root` is put before every /proc and /sys path that is read, for tests; empty for the real one.
#pragma once

#include <string>

#include "os/file/file_facts.hpp"
#include "os/limits.hpp"
#include "penstock/profile.hpp"

namespace penstock::os {

// All but the device, which the caller knows.
MachineIdentity machine_identity(const Limits& limits, const std::string& root = {});
// `facts` with its mount.
PlaceIdentity place_identity(const FileFacts& facts, const std::string& root = {});

}  // namespace penstock::os
