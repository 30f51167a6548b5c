// The names of files before they get their own, and the removal of files that killed writers left.
//
// The first names tried for a target are always the same. So the next writer meets the file that a killed one left,
// without listing the folder. A living writer holds a lock on its file. The lock ends with the process, whatever its
// number and container. On network file systems locks may be local to a machine, so there the name includes the
// machine. Ensures: no file is removed without its lock, and no file of another user.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "os/system.hpp"

namespace penstock::os {

// Returns whether `base`, a name without folder, has the form of a temporary name.
bool is_temporary(std::string_view base) noexcept;

// Returns the name for try number `attempt`. After the first few tries the names cannot be predicted. `local`: see
// is_local_file_system.
std::string temporary_name(const std::string& base, int attempt, bool local);

// Returns whether only this kernel writes the files of this file system. Then it knows all locks, and close() reports
// no late error.
bool is_local_file_system(int fd) noexcept;

// Calls `make` with one name after another until it succeeds, or fails for another reason than a taken name. Removes
// files of dead writers on the way. Returns the name that worked. If it is empty, errno says why it failed.
std::string make_temporary(System& system, int folder, const std::string& base,
                           const std::function<bool(const std::string& name)>& make);

// Takes the writer's lock on its file. Returns false if the file system has no locks, or if another process holds this
// one.
bool lock_temporary(int fd) noexcept;
void unlock_temporary(int fd) noexcept;

}  // namespace penstock::os
