// See writer_locks.hpp.
#include "os/new_file/writer_locks.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "os/fd.hpp"
#include "penstock/error.hpp"

namespace penstock::os {
namespace {

[[noreturn]] void refuse_writer(const std::string& name, const char* cause) {
    ErrorInfo info;
    info.code = ErrorCode::io_error;
    info.operation = "replace";
    info.file = name;
    info.cause = cause;
    info.advice = "wait until it is closed there, or give another name";
    throw Error(std::move(info));
}

}  // namespace

bool is_of_history(int fd) noexcept {
    struct flock asked {};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    asked.l_start = kHistoryLockAt;
    asked.l_len = 1;
    return ::fcntl(fd, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
}

void need_no_writer(const std::string& name) {
    const UniqueFd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return;
    if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        refuse_writer(name, "another program, or this one, has it open for writing");
    }
    if (is_of_history(file.get())) refuse_writer(name, "a history, of this program or another one, writes it");
}

}  // namespace penstock::os
