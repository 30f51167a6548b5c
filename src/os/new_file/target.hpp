// Target: the folder and the name of a file to be made. The folder stays open, so that neither a change of the working
// folder nor a link that is put in the way later can redirect the writer.
//
// The kernel follows symbolic links by its own rules (fs.protected_symlinks), and they stay in place. A link to a
// missing file names the file to be made. Another user's link in a sticky folder that others may write to is refused.
// nothing names what is to be made; a stranger's, in a sticky folder that others may write to, is refused.
#pragma once

#include <string>

#include "os/fd.hpp"

namespace penstock::os {

struct Target {
    UniqueFd folder;   // O_PATH
    std::string base;  // the name in the folder
    UniqueFd there;    // O_PATH, of the file that has the name; empty: none has
};

// Throws Error with `operation` and `name`. The file that has the name may be of any kind but a symbolic link.
Target resolve(System& system, const std::string& name, const char* operation);

// Opens the file that has the name now. Does not follow a link.
UniqueFd look(System& system, const Target& target);

// Throws Error unless the caller could write to the file, by its permissions and by the rule of fs.protected_regular:
// in a sticky folder that others may write to, another user's files are protected.
void need_replaceable(const Target& target, int there, const std::string& name);

// Returns the path of an open file or folder, as the kernel has it. Throws Error with `operation` and `name`.
std::string path_of(int fd, const std::string& name, const char* operation);

}  // namespace penstock::os
