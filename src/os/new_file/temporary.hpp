// The names that files have until they get their own, and the removal of those that killed writers left.
//
// The first names tried for a target are always the same: so the next writer of it meets what a killed one left,
// without a listing of the folder. A living writer holds a lock on its file, which ends with its process: whatever
// number that had, in whatever container. On file systems of networks, whose locks may be local to a machine, the name
// tells the machine too. What must stay true: nothing is removed without its lock, and nothing of another user.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "os/system.hpp"

namespace penstock::os {

// Whether a name, without its folder, has the shape of these.
bool is_temporary(std::string_view base) noexcept;

// The one for the `attempt`-th try; from some number of tries on, one that nobody can foresee. `local`: see
// is_local_file_system.
std::string temporary_name(const std::string& base, int attempt, bool local);

// Whether files behind the descriptor are kept by this kernel alone: it knows of all locks, and close() tells nothing.
bool is_local_file_system(int fd) noexcept;

// Tries `make` with one name after the other until it succeeds, or fails otherwise than because the name is taken. Dead
// ones are removed on the way. The name that it succeeded with; empty: it failed, and errno says why.
std::string make_temporary(System& system, int folder, const std::string& base,
                           const std::function<bool(const std::string& name)>& make);

// The writer's lock on its file. False where the file system has no locks, or another process holds this one.
bool lock_temporary(int fd) noexcept;
void unlock_temporary(int fd) noexcept;

}  // namespace penstock::os
