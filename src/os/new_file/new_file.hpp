// A new file that gets its name when it is whole, in place of an older one, or never.
//
// It is an O_TMPFILE where the file system has them and its users need no name, else a hidden temporary beside the
// target. What must stay true: until publish() gives it the name, an older file is untouched; after an error, abandon()
// or the end of the object nothing is left; it is never open to more users than the file that it replaces; errors of
// its writes that the kernel held back are told before it has the name; a failed publish stays failed.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "os/fd.hpp"
#include "os/new_file/carry.hpp"
#include "os/new_file/target.hpp"
#include "penstock/error.hpp"

namespace penstock::os {

struct NewFileOptions {
    bool replace = true;   // an existing regular file may be replaced
    bool unnamed = false;  // its users reach it by the descriptor, so it needs no name before publish()
};

class NewFile {
  public:
    // Symbolic links are followed now: `name` is not looked up again. Throws Error{create}.
    NewFile(System& system, const std::string& name, const NewFileOptions& options);
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    int fd() const noexcept { return fd_.get(); }
    std::string path() const;       // that it will have: absolute, as the kernel spells it now
    std::string temporary() const;  // that it has; empty for one without a name

    // Idempotent once it succeeded. `durable`: the file, then its name, are on stable storage. When it throws, the old
    // file is untouched, unless the error is of the folder's fsync: then the name is given, but may not last.
    void publish(bool durable);
    void abandon() noexcept;  // does nothing after publish()
    void close() noexcept;  // after either: holds nothing open any more, so that file systems can be unmounted

  private:
    enum class State { open, published, failed, gone };

    void check_existing();
    void make(bool unnamed);
    bool make_named(const std::string& name);
    void settle(bool durable);
    void carry_rights();
    void give_name();
    void name_unnamed();
    void rename_new();
    UniqueFd open_folder() const;
    void sync(const UniqueFd& folder) const;
    bool here() const noexcept;
    [[noreturn]] void fail(const char* operation, int error_number) const;

    System& system_;
    std::string name_;  // as the caller gave it, for messages
    NewFileOptions options_;
    Target target_;
    std::optional<Attributes> old_;  // of what it replaces
    struct stat old_facts_ {};
    UniqueFd fd_;
    std::string temporary_;  // in the folder; empty: it has no name
    bool local_ = true;
    State state_ = State::open;
    ErrorInfo failure_;  // of the first publish that failed
    pid_t process_;      // that made it: what a forked child lets go of is still its parent's
};

}  // namespace penstock::os
