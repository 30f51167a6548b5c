// NewFile: a new file that gets its name only when it is complete. It may replace an older file.
//
// It is made by O_TMPFILE if the file system supports that and its users need no name. Otherwise it is a hidden
// temporary file beside the target. Ensures:
// - Until publish() names it, an older file of that name is untouched.
// - After an error, after abandon() and after the destructor, nothing is left of it.
// - It is never open to more users than the file that it replaces.
// - publish() reports write errors that the kernel held back before it names the file.
// - After publish() failed once, it always fails.
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
    bool replace = true;   // it may replace an existing regular file
    bool unnamed = false;  // its users need no name before publish(), only the descriptor
};

class NewFile {
  public:
    // Follows symbolic links now and never looks up `name` again. Throws Error with operation "create".
    NewFile(System& system, const std::string& name, const NewFileOptions& options);
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    int fd() const noexcept { return fd_.get(); }
    std::string path() const;       // the final path: absolute, as the kernel spells it now
    std::string temporary() const;  // its temporary path; empty if it has no name

    // May be called again after it succeeded. With `durable` the file, and then its name, are on stable storage when it
    // returns. If it throws, the old file is untouched. The exception is a failed fsync of the folder: then the file
    // has its name but may lose it.
    void publish(bool durable);
    void abandon() noexcept;  // does nothing after publish()
    // after publish() or abandon(): closes all descriptors, so that the file system can be unmounted
    void close() noexcept;

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
    std::string name_;  // as the caller wrote it, for messages
    NewFileOptions options_;
    Target target_;
    std::optional<Attributes> old_;  // of the file that it replaces
    struct stat old_facts_ {};
    UniqueFd fd_;
    std::string temporary_;  // its name in the folder; empty: it has none
    bool local_ = true;
    State state_ = State::open;
    ErrorInfo failure_;  // of the first publish() that failed
    pid_t process_;      // the process that made it; a forked child must not remove its parent's file
};

}  // namespace penstock::os
