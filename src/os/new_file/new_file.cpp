// See new_file.hpp. A durable publish writes in this order: permissions, data and inode to storage, then the name, then
// the folder.
#include "os/new_file/new_file.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/new_file/late_error.hpp"
#include "os/new_file/temporary.hpp"
#include "os/refusal.hpp"

namespace penstock::os {
namespace {

constexpr unsigned kNewMode = 0666;       // the umask still applies
constexpr struct stat kNothing {};
constexpr unsigned kReplacingMode = 0600;  // until it gets the mode of the file that it replaces

struct stat facts_of(int fd, const std::string& name) {
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) refuse("fstat", name, errno);
    return facts;
}

bool same_file(const struct stat& one, const struct stat& other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool same_rights(const struct stat& one, const struct stat& other) {
    return one.st_mode == other.st_mode && one.st_uid == other.st_uid && one.st_gid == other.st_gid &&
           one.st_ctim.tv_sec == other.st_ctim.tv_sec && one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
}

}  // namespace

NewFile::NewFile(System& system, const std::string& name, const NewFileOptions& options)
    : system_(system),
      name_(name),
      options_(options),
      target_(resolve(system, name, "create")),
      process_(::getpid()) {
    if (target_.there) check_existing();
    make(options.unnamed);
    local_ = is_local_file_system(fd_.get());
}

NewFile::~NewFile() { abandon(); }

void NewFile::close() noexcept {
    fd_.reset();
    target_.there.reset();
    target_.folder.reset();
}

bool NewFile::here() const noexcept { return ::getpid() == process_; }

void NewFile::fail(const char* operation, int error_number) const { refuse(operation, name_, error_number); }

std::string NewFile::path() const { return path_of(target_.folder.get(), name_, "create") + "/" + target_.base; }

std::string NewFile::temporary() const {
    if (temporary_.empty()) return {};
    return path_of(target_.folder.get(), name_, "create") + "/" + temporary_;
}

void NewFile::check_existing() {
    const struct stat facts = facts_of(target_.there.get(), name_);
    if (!S_ISREG(facts.st_mode)) {
        ErrorInfo info = errno_info("create", name_, S_ISDIR(facts.st_mode) ? EISDIR : EINVAL);
        info.code = ErrorCode::not_a_regular_file;
        info.cause = "something that is not a regular file has this name";
        info.advice = "give another name";
        throw Error(std::move(info));
    }
    if (!options_.replace) refuse("create", name_, EEXIST, "remove the file or allow replacing it");
    need_replaceable(target_, target_.there.get(), name_);
    old_facts_ = facts;
    old_ = attributes_of(target_.there.get(), name_);
}

void NewFile::make(bool unnamed) {
    const unsigned mode = old_ ? kReplacingMode : kNewMode;
    const int folder = target_.folder.get();
    errno = EOPNOTSUPP;
    if (unnamed) fd_ = UniqueFd(system_.openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode), system_);
    if (fd_) return;
    if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) {
        temporary_ = make_temporary(system_, folder, target_.base,
                                    [this](const std::string& name) { return make_named(name); });
    }
    if (!fd_) fail("create", errno);
}

// Between openat and the lock another writer may take the file for that of a dead process and remove it. Then the
// caller tries another name.
bool NewFile::make_named(const std::string& name) {
    const unsigned mode = old_ ? kReplacingMode : kNewMode;
    fd_ = UniqueFd(
        system_.openat(target_.folder.get(), name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode), system_);
    if (!fd_) return false;
    const bool locked = lock_temporary(fd_.get());
    struct stat facts {};
    if ((locked || errno != EAGAIN) && ::fstat(fd_.get(), &facts) == 0 && facts.st_nlink != 0) return true;
    fd_.reset();
    errno = EEXIST;
    return false;
}

void NewFile::publish(bool durable) {
    if (state_ == State::published) return;
    if (state_ == State::failed) throw Error(failure_);
    if (state_ == State::gone) throw Error(ErrorCode::invalid_argument, "publish " + name_, "it was abandoned");
    try {
        carry_rights();
        settle(durable);
        const UniqueFd folder = durable ? open_folder() : UniqueFd();
        give_name();
        unlock_temporary(fd_.get());
        state_ = State::published;
        if (durable) sync(folder);
    } catch (const Error& error) {
        failure_ = error.info();
        abandon();
        state_ = State::failed;
        throw;
    }
}

void NewFile::settle(bool durable) {
    if (durable && again_if_interrupted([&] { return system_.fsync(fd_.get()); }) != 0) fail("fsync", errno);
    if (const int number = late_error(system_, fd_.get(), local_); number != 0) fail("write", number);
}

// Looks at the file that has the name now. If it appeared while the new file was written, its permissions only take
// rights away.
void NewFile::carry_rights() {
    const UniqueFd now = look(system_, target_);
    if (!now && errno != ENOENT) fail("replace", errno);
    const struct stat found = now ? facts_of(now.get(), name_) : kNothing;
    if (!S_ISREG(found.st_mode)) {
        if (old_) carry(*old_, fd_.get(), name_, Carry::all);
        return;
    }
    if (old_ && same_file(found, old_facts_)) {
        if (!same_rights(found, old_facts_)) old_ = attributes_of(now.get(), name_);
        carry(*old_, fd_.get(), name_, Carry::all);
        return;
    }
    need_replaceable(target_, now.get(), name_);
    if (old_) carry(*old_, fd_.get(), name_, Carry::all);
    carry(attributes_of(now.get(), name_), fd_.get(), name_, Carry::narrow);
}

void NewFile::give_name() {
    if (temporary_.empty()) name_unnamed();
    if (temporary_.empty()) return;
    if (!options_.replace) return rename_new();
    if (system_.rename(target_.folder.get(), temporary_.c_str(), target_.base.c_str(), 0) != 0) {
        fail("rename to", errno);
    }
    temporary_.clear();
}

// An O_TMPFILE file cannot replace a name. If the name is taken, it gets a temporary one, and rename then replaces.
void NewFile::name_unnamed() {
    const int folder = target_.folder.get();
    if (system_.link_fd(fd_.get(), folder, target_.base.c_str()) == 0) return;
    if (errno != EEXIST || !options_.replace) fail("name", errno);
    static_cast<void>(lock_temporary(fd_.get()));
    temporary_ = make_temporary(system_, folder, target_.base, [&](const std::string& name) {
        return system_.link_fd(fd_.get(), folder, name.c_str()) == 0;
    });
    if (temporary_.empty()) fail("name", errno);
}

// Uses a hard link if the file system cannot rename without replacing.
void NewFile::rename_new() {
    const int folder = target_.folder.get();
    if (system_.rename(folder, temporary_.c_str(), target_.base.c_str(), RENAME_NOREPLACE) == 0) {
        temporary_.clear();
        return;
    }
    if (errno != EINVAL && errno != ENOSYS) fail("rename to", errno);
    if (system_.link_fd(fd_.get(), folder, target_.base.c_str()) != 0) fail("name", errno);
    system_.unlink(folder, std::exchange(temporary_, {}).c_str());
}

// Called before the name is given, so that a failure changes nothing.
UniqueFd NewFile::open_folder() const {
    UniqueFd folder(system_.openat(target_.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), system_);
    if (!folder) fail("open the directory of", errno);
    return folder;
}

void NewFile::sync(const UniqueFd& folder) const {
    if (again_if_interrupted([&] { return system_.fsync(folder.get()); }) == 0) return;
    refuse("fsync the directory of", name_, errno, "the file has its name, but may lose it with the power");
}

void NewFile::abandon() noexcept {
    if (state_ != State::open) return;
    state_ = State::gone;
    if (!temporary_.empty() && here()) system_.unlink(target_.folder.get(), temporary_.c_str());
    temporary_.clear();
}

}  // namespace penstock::os
