// NameLock: of all programs, and of all writers in one, a single one writes what has a name.
//
// A file that is written whole and then renamed is another file each time, so a lock of the file itself would keep no
// other writer out. The lock is of a small hidden file beside it, `.NAME.penstock-lock`, which goes when the lock does.
// It is a lock of the kernel: it ends with the process, however that ends, and a file that a killed process left keeps
// no writer out. A forked child does not have it. Ensures: no holder removes or keeps a lock file whose name another
// file has by now.
#pragma once

#include <sys/types.h>

#include <string>

#include "os/fd.hpp"

namespace penstock::os {

// The lock file of a name.
std::string lock_file_of(const std::string& name);

class NameLock {
  public:
    NameLock() noexcept = default;
    // Throws Error{io_error} with `operation` and `name` where another holder, of this process too, has it. Holds
    // nothing where the file system has no locks, or where no lock file can be made or written beside the name.
    NameLock(System& system, const std::string& name, const char* operation);
    NameLock(NameLock&& other) noexcept;
    NameLock& operator=(NameLock&& other) noexcept;
    ~NameLock() { release(); }

    // False too where the lock file was removed: then others may hold the name.
    bool is_held() const noexcept;
    void release() noexcept;

  private:
    bool take(System& system, const std::string& name, const char* operation);
    bool has_its_name() const noexcept;

    std::string path_;
    UniqueFd file_;
    pid_t process_ = 0;  // that holds it
};

}  // namespace penstock::os
