// See late_error.hpp. Asks in three ways, because kernel clients differ. FUSE, NFS, CIFS and Lustre write back and
// report when a second descriptor closes. NFS with a delegation, and 9p, report after a write-back of all pages. And
// every descriptor has its own pending error (errseq), which no other descriptor's question clears.
#include "os/new_file/late_error.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdint>

#include "os/refusal.hpp"

namespace penstock::os {
namespace {

constexpr unsigned kWriteAndWait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
constexpr std::uint64_t kBehindAll = std::uint64_t{1} << 62;  // there is no page to wait for

// A process that has no descriptor left cannot make a second one, which says nothing of its writes. A write-back of all
// to storage then tells the errors of the disk that is elsewhere, and takes longer.
int flush_without_second(System& system, int fd, bool local) noexcept {
    if (!is_out_of_descriptors(errno)) return errno;
    return local || again_if_interrupted([&] { return system.fdatasync(fd); }) == 0 ? 0 : errno;
}

int flush(System& system, int fd, bool local) noexcept {
    const int second = system.dup(fd);
    if (second < 0) return flush_without_second(system, fd, local);
    return system.close(second) == 0 || errno == EINTR ? 0 : errno;  // Linux has closed it even if close returned EINTR
}

int ask(System& system, int fd, bool local) noexcept {
    const auto wait = [&] {
        return local ? system.sync_file_range(fd, kBehindAll, 1, SYNC_FILE_RANGE_WAIT_BEFORE)
                     : system.sync_file_range(fd, 0, 0, kWriteAndWait);
    };
    if (again_if_interrupted(wait) == 0) return 0;
    if (errno != ENOSYS && errno != EPERM) return errno;  // sandboxes may forbid the call
    return again_if_interrupted([&] { return system.fdatasync(fd); }) == 0 ? 0 : errno;
}

}  // namespace

// Also clears what remains after the first error. Otherwise the file's next writer would get this writer's error.
int late_error(System& system, int fd, bool local) noexcept {
    const int told = flush(system, fd, local);
    if (told != 0) static_cast<void>(flush(system, fd, local));
    const int asked = ask(system, fd, local);
    return told != 0 ? told : asked;
}

}  // namespace penstock::os
