// Target: where a new file will have its name. The folder is held open, so that neither a change of the working folder
// nor a link put into the way afterwards leads elsewhere.
//
// Symbolic links are followed by the kernel, with its rules (fs.protected_symlinks), and stay. A link that leads to
// nothing names what is to be made; a stranger's, in a sticky folder that others may write to, is refused.
#pragma once

#include <string>

#include "os/fd.hpp"

namespace penstock::os {

struct Target {
    UniqueFd folder;   // O_PATH
    std::string base;  // the name in the folder
    UniqueFd there;    // O_PATH, of what has the name; empty: nothing has
};

// Throws Error{operation} with `name`. What is there may be anything but a symbolic link.
Target resolve(System& system, const std::string& name, const char* operation);

// Looks again at what has the name. A link is told as it is.
UniqueFd look(System& system, const Target& target);

// Throws Error unless the caller could write into what is there, by its permissions, and by the rule of
// fs.protected_regular: in a sticky folder that others may write to, not into the files of strangers.
void need_replaceable(const Target& target, int there, const std::string& name);

// Of an open file or folder, as the kernel has it; throws Error{operation} with `name`.
std::string path_of(int fd, const std::string& name, const char* operation);

}  // namespace penstock::os
