// See late_error.hpp. Three ways of asking, because each kernel client has its own: the close of a second descriptor
// (FUSE, NFS, CIFS, Lustre write back what they hold and answer), a write-back of all pages that is waited for (NFS
// with a delegation, 9p), and the error that the descriptor has not been told yet (errseq), which no other asker takes
// away.
#include "os/new_file/late_error.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdint>

#include "os/refusal.hpp"

namespace penstock::os {
namespace {

constexpr unsigned kWriteAndWait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
constexpr std::uint64_t kBehindAll = std::uint64_t{1} << 62;  // no page is there to wait for

int flush(System& system, int fd) noexcept {
    const int second = system.dup(fd);
    if (second < 0) return errno;
    return system.close(second) == 0 || errno == EINTR ? 0 : errno;  // Linux has closed it either way
}

int ask(System& system, int fd, bool local) noexcept {
    const auto wait = [&] {
        return local ? system.sync_file_range(fd, kBehindAll, 1, SYNC_FILE_RANGE_WAIT_BEFORE)
                     : system.sync_file_range(fd, 0, 0, kWriteAndWait);
    };
    if (again_if_interrupted(wait) == 0) return 0;
    if (errno != ENOSYS && errno != EPERM) return errno;  // sandboxes may refuse the call
    return again_if_interrupted([&] { return system.fdatasync(fd); }) == 0 ? 0 : errno;
}

}  // namespace

// What is left after the first error is taken along, or the next writer of the file would be told of this one's.
int late_error(System& system, int fd, bool local) noexcept {
    const int told = flush(system, fd);
    if (told != 0) static_cast<void>(flush(system, fd));
    const int asked = ask(system, fd, local);
    return told != 0 ? told : asked;
}

}  // namespace penstock::os
