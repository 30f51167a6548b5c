// See name_lock.hpp. The lock is of the open file (F_OFD_SETLK), so it keeps out other writers of the same process too.
// A child that is forked has that open file as well and would keep the lock when its parent is gone, so it closes it.
#include "os/new_file/name_lock.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::os {
namespace {

constexpr std::size_t kLockNamePart = 200;  // bytes of the name that are kept, from its end: all must fit NAME_MAX
constexpr int kLockTries = 100;
constexpr unsigned kLockMode = 0666;  // the umask still applies

// Descriptors of locks, as one more than their number. Locks beyond these are kept by forked children as well.
std::array<std::atomic<int>, 256> held_locks{};

void child_begins() {
    for (std::atomic<int>& one : held_locks) {
        const int fd = one.exchange(0) - 1;
        if (fd >= 0) ::close(fd);
    }
}

void let_children_close(int fd) {
    static const int registered = ::pthread_atfork(nullptr, nullptr, child_begins);
    static_cast<void>(registered);
    for (std::atomic<int>& one : held_locks) {
        int free = 0;
        if (one.compare_exchange_strong(free, fd + 1)) return;
    }
}

void forget(int fd) {
    for (std::atomic<int>& one : held_locks) {
        int mine = fd + 1;
        if (one.compare_exchange_strong(mine, 0)) return;
    }
}

struct flock first_byte() noexcept {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    return lock;
}

[[noreturn]] void refuse_second(const std::string& name, const char* operation) {
    ErrorInfo info;
    info.code = ErrorCode::io_error;
    info.operation = operation;
    info.file = name;
    info.cause = "another writer, of this program or another one, has this name";
    info.advice = "end that one, or give another name; after a crash of its machine remove " + lock_file_of(name);
    throw Error(std::move(info));
}

// One that may not be written can be asked for its lock, and not be locked.
UniqueFd opened(System& system, const std::string& path) {
    const int how = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    UniqueFd file(system.open(path.c_str(), O_RDWR | O_CREAT | how, kLockMode), system);
    if (!file && errno == EACCES) file = UniqueFd(system.open(path.c_str(), O_RDONLY | how, 0), system);
    return file;
}

bool others_hold(System& system, int fd) {
    struct flock asked = first_byte();
    return system.lock(fd, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
}

}  // namespace

std::string lock_file_of(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    const std::size_t bytes = name.size() - begin;
    const std::size_t kept = bytes < kLockNamePart ? bytes : kLockNamePart;
    return name.substr(0, begin) + "." + name.substr(name.size() - kept) + ".penstock-lock";
}

NameLock::NameLock(System& system, const std::string& name, const char* operation)
    : path_(lock_file_of(name)), process_(::getpid()) {
    for (int i = 0; i < kLockTries; ++i)
        if (take(system, name, operation)) return;
}

NameLock::NameLock(NameLock&& other) noexcept
    : path_(std::move(other.path_)), file_(std::move(other.file_)), process_(other.process_) {}

NameLock& NameLock::operator=(NameLock&& other) noexcept {
    if (this == &other) return *this;
    release();
    path_ = std::move(other.path_);
    file_ = std::move(other.file_);
    process_ = other.process_;
    return *this;
}

// False: the file lost its name meanwhile, since its holder ended.
bool NameLock::take(System& system, const std::string& name, const char* operation) {
    file_ = opened(system, path_);
    struct stat facts {};
    if (!file_ || ::fstat(file_.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        file_.reset();
        return true;
    }
    struct flock wanted = first_byte();
    if (system.lock(file_.get(), F_OFD_SETLK, &wanted) != 0) {
        const int number = errno;
        if (number == EAGAIN || number == EACCES) refuse_second(name, operation);
        if (number == EBADF && others_hold(system, file_.get())) refuse_second(name, operation);
        const bool has_no_locks = number == ENOSYS || number == EOPNOTSUPP || number == EINVAL;
        if (has_no_locks && facts.st_size == 0) ::unlink(path_.c_str());  // it is of no use to any one
        file_.reset();
        return true;
    }
    if (!has_its_name()) return false;
    let_children_close(file_.get());
    return true;
}

bool NameLock::has_its_name() const noexcept {
    struct stat named {
    }, opened{};
    return ::lstat(path_.c_str(), &named) == 0 && ::fstat(file_.get(), &opened) == 0 && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
}

bool NameLock::is_held() const noexcept { return file_ && process_ == ::getpid() && has_its_name(); }

void NameLock::release() noexcept {
    if (!file_) return;
    if (process_ != ::getpid()) {
        file_.release();  // it was closed when this child began
        return;
    }
    struct stat facts {};
    if (has_its_name() && ::fstat(file_.get(), &facts) == 0 && facts.st_size == 0) ::unlink(path_.c_str());
    forget(file_.get());
    file_.reset();
}

}  // namespace penstock::os
