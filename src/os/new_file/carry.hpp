// Who may do what with a file, and its notes: carried from the file that is replaced to the one that replaces it.
//
// What must stay true: its writer apart, nobody can read or write the new file who could not the old one. Where an
// owner, a group or an access control list cannot be kept, the mode is narrowed.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace penstock::os {

struct Attributes {
    mode_t mode = 0;  // permissions only: set-user-ID and set-group-ID do not outlive a write
    uid_t owner = 0;
    gid_t group = 0;
    std::vector<std::pair<std::string, std::string>> notes;  // user.*
    std::vector<std::pair<std::string, std::string>> lists;  // access control lists, POSIX or of NFS
};

// Of an open file or folder; O_PATH will do. Throws Error{fstat} with `name`.
Attributes attributes_of(int fd, const std::string& name);

enum class Carry {
    all,
    narrow,  // what is there came while the new file was written: it only takes rights away
};

// To the new file or folder behind `fd`, which is the caller's. Throws Error where its mode cannot be set.
void carry(const Attributes& old, int fd, const std::string& name, Carry how);

}  // namespace penstock::os
