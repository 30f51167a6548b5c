// Copies permissions and attributes from the file that is replaced to the file that replaces it.
//
// Ensures: except for its writer, no user can read or write the new file who could not do so with the old one. If an
// owner, a group or an access control list cannot be kept, the mode is narrowed.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace penstock::os {

struct Attributes {
    mode_t mode = 0;  // permission bits only: a write clears set-user-ID and set-group-ID
    uid_t owner = 0;
    gid_t group = 0;
    std::vector<std::pair<std::string, std::string>> notes;  // extended attributes in user.*
    std::vector<std::pair<std::string, std::string>> lists;  // access control lists, of POSIX or of NFS
};

// Reads them from an open file or folder, also one opened by O_PATH. Throws Error with operation "fstat" and `name`.
Attributes attributes_of(int fd, const std::string& name);

enum class Carry {
    all,
    narrow,  // the old file appeared while the new one was written: only take rights away
};

// Applies `old` to the new file or folder behind `fd`. Requires: it belongs to the caller. Throws Error if its mode
// cannot be set.
void carry(const Attributes& old, int fd, const std::string& name, Carry how);

}  // namespace penstock::os
