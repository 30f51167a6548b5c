// See temporary.hpp. The locks belong to open files (F_OFD_SETLK) and lie far beyond all data, so that locks on whole
// files (flock), which some formats take, do not conflict with them.
#include "os/new_file/temporary.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "os/fd.hpp"
#include "os/file/file_stat.hpp"

namespace penstock::os {
namespace {

constexpr std::string_view kMark = ".penstock-";
constexpr std::size_t kNamePart = 100;  // bytes of the target's name that are kept: the whole must fit NAME_MAX
constexpr std::size_t kHostPart = 64;
constexpr int kForeseen = 8;      // names tried before unpredictable ones
constexpr int kAttempts = 1000;   // tries before giving up
constexpr off_t kLockAt = off_t{1} << 62;

struct flock lock_of(short type) noexcept {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = kLockAt;
    lock.l_len = 1;
    return lock;
}

std::string machine() {
    struct utsname names {};
    if (::uname(&names) != 0) return "unknown";
    return std::string(names.nodename).substr(0, kHostPart);
}

std::string unforeseen() {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number))) {
        number = static_cast<std::uint64_t>(::getpid());
    }
    std::array<char, 20> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
    return text.data();
}

// Returns true if the name is free now.
bool remove_dead(System& system, int folder, const char* name) {
    const UniqueFd found(system.openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0), system);
    struct stat file {}, named {};
    if (!found || ::fstat(found.get(), &file) != 0) return false;
    if (!S_ISREG(file.st_mode) || file.st_uid != ::geteuid() || !lock_temporary(found.get())) return false;
    if (::fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    if (named.st_dev != file.st_dev || named.st_ino != file.st_ino) return false;
    return system.unlink(folder, name) == 0;
}

}  // namespace

bool is_temporary(std::string_view base) noexcept {
    return base.starts_with('.') && base.find(kMark) != std::string_view::npos;
}

std::string temporary_name(const std::string& base, int attempt, bool local) {
    const std::string head = "." + base.substr(0, kNamePart) + std::string(kMark);
    const std::string host = local ? std::string() : machine() + "-";
    return head + host + (attempt < kForeseen ? std::to_string(attempt) : unforeseen());
}

bool is_local_file_system(int fd) noexcept {
    static constexpr std::array kLocal{"ext4", "xfs", "btrfs", "tmpfs", "ramfs", "hugetlbfs", "overlay", "f2fs", "zfs",
                                       "bcachefs"};
    struct statfs system {};
    if (::fstatfs(fd, &system) != 0) return false;
    const std::string name = file_system_from_magic(static_cast<std::uint64_t>(system.f_type));
    return std::find(kLocal.begin(), kLocal.end(), name) != kLocal.end();
}

std::string make_temporary(System& system, int folder, const std::string& base,
                           const std::function<bool(const std::string& name)>& make) {
    const bool local = is_local_file_system(folder);
    const auto removes_dead = [&](int attempt) {
        return attempt < kForeseen && remove_dead(system, folder, temporary_name(base, attempt, local).c_str());
    };
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        const std::string name = temporary_name(base, attempt, local);
        bool made = make(name);
        if (!made && errno != EEXIST) return {};
        if (!made && removes_dead(attempt)) made = make(name);
        if (!made) continue;
        // Further dead files may stand behind the free name, since a killed writer may have met a living one.
        for (int further = attempt + 1; removes_dead(further); ++further) {
        }
        return name;
    }
    errno = EEXIST;
    return {};
}

bool lock_temporary(int fd) noexcept {
    struct flock lock = lock_of(F_WRLCK);
    return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

void unlock_temporary(int fd) noexcept {
    struct flock lock = lock_of(F_UNLCK);
    static_cast<void>(::fcntl(fd, F_OFD_SETLK, &lock));
}

}  // namespace penstock::os
