// See file_stat.hpp. Uses fstat, fstatfs and /proc/self/mountinfo. The mount is found by the descriptor's mount id
// (/proc/self/fdinfo). That also works for bind mounts and for btrfs, whose st_dev differs from the mount's.
#include "os/file/file_stat.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "penstock/error.hpp"

namespace penstock::os {
namespace {

constexpr std::uint64_t kHugetlbfsMagic = 0x958458F6;  // linux/magic.h

struct Magic {
    std::uint64_t magic;
    const char* name;
    CachedBy cached_by;
    bool is_made_by_kernel = false;
};

// Numbers from linux/magic.h and from file systems outside the kernel tree.
constexpr std::array kMagics{
    Magic{0xEF53, "ext4", CachedBy::page_cache},
    Magic{0x58465342, "xfs", CachedBy::page_cache},
    Magic{0x9123683E, "btrfs", CachedBy::page_cache},
    Magic{0xF2F52010, "f2fs", CachedBy::page_cache},
    Magic{0xCA451A4E, "bcachefs", CachedBy::page_cache},
    Magic{0x7461636F, "ocfs2", CachedBy::page_cache},
    Magic{0x73717368, "squashfs", CachedBy::page_cache},
    Magic{0x6969, "nfs", CachedBy::page_cache},
    Magic{0x0BD00BD0, "lustre", CachedBy::page_cache},
    Magic{0x00C36400, "ceph", CachedBy::page_cache},
    Magic{0xFF534D42, "cifs", CachedBy::page_cache},
    Magic{0xFE534D42, "smb3", CachedBy::page_cache},
    Magic{0x01021994, "tmpfs", CachedBy::memory},
    Magic{0x858458F6, "ramfs", CachedBy::memory},
    Magic{kHugetlbfsMagic, "hugetlbfs", CachedBy::memory},
    Magic{0x794C7630, "overlay", CachedBy::others},
    Magic{0x65735546, "fuse", CachedBy::others},
    Magic{0x01021997, "9p", CachedBy::others},
    Magic{0xF15F, "ecryptfs", CachedBy::others},
    Magic{0x19830326, "beegfs", CachedBy::others},
    Magic{0x2FC12FC1, "zfs", CachedBy::itself},
    Magic{0x47504653, "gpfs", CachedBy::itself},
    Magic{0xAAD7AAEA, "panfs", CachedBy::itself},
    Magic{0x9FA0, "proc", CachedBy::others, true},
    Magic{0x62656572, "sysfs", CachedBy::others, true},
    Magic{0x64626720, "debugfs", CachedBy::others, true},
    Magic{0x74726163, "tracefs", CachedBy::others, true},
    Magic{0x27E0EB, "cgroup", CachedBy::others, true},
    Magic{0x63677270, "cgroup2", CachedBy::others, true},
    Magic{0x73636673, "securityfs", CachedBy::others, true},
};

const Magic* kind_of(std::uint64_t magic) noexcept {
    for (const Magic& kind : kMagics) {
        if (kind.magic == (magic & 0xFFFFFFFFu)) return &kind;
    }
    return nullptr;
}

FileType type_of(mode_t mode) noexcept {
    if (S_ISREG(mode)) return FileType::regular;
    if (S_ISDIR(mode)) return FileType::directory;
    if (S_ISFIFO(mode)) return FileType::fifo;
    if (S_ISBLK(mode) || S_ISCHR(mode)) return FileType::device;
    return FileType::other;
}

int mount_id_of(int fd) {
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(fd));
    std::string key;
    while (info >> key) {
        int value = -1;
        if (key == "mnt_id:" && info >> value) return value;
        info.ignore(4096, '\n');
    }
    return -1;
}

bool find_mount(int fd, Mount& found) {
    const int id = mount_id_of(fd);
    if (id < 0) return false;
    std::ifstream mounts("/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);) {
        if (parse_mount(line, found) && found.id == id) return true;
    }
    return false;
}

}  // namespace

// For example "36 35 98:0 /root /mnt rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue". The fields after the
// sixth are optional, up to a single dash.
bool parse_mount(const std::string& line, Mount& mount) {
    std::istringstream fields(line);
    std::string parent, device, root, point, options, field, source, super_options;
    if (!(fields >> mount.id >> parent >> device >> root >> point >> options)) return false;
    while (fields >> field && field != "-") {
    }
    if (!(fields >> mount.file_system >> source)) return false;
    fields >> super_options;
    if (std::sscanf(device.c_str(), "%u:%u", &mount.device_major, &mount.device_minor) != 2) return false;
    mount.mount_point = point;
    mount.options = super_options.empty() ? options : options + "," + super_options;
    return true;
}

std::string file_system_from_magic(std::uint64_t magic) {
    if (const Magic* kind = kind_of(magic)) return kind->name;
    std::ostringstream text;
    text << "unknown (0x" << std::hex << (magic & 0xFFFFFFFFu) << ")";
    return text.str();
}

CachedBy cached_by(int fd, std::string& name) {
    struct statfs system {};
    name = "unknown";
    if (::fstatfs(fd, &system) != 0) return CachedBy::others;
    name = file_system_from_magic(static_cast<std::uint64_t>(system.f_type));
    const Magic* kind = kind_of(static_cast<std::uint64_t>(system.f_type));
    return kind == nullptr ? CachedBy::others : kind->cached_by;
}

bool answers_here(CachedBy cached_by, std::string_view file_system) noexcept {
    static constexpr std::array kAskServers{"nfs", "lustre", "ceph", "cifs", "smb3", "ocfs2"};
    if (cached_by != CachedBy::page_cache) return cached_by == CachedBy::memory;
    return std::find(kAskServers.begin(), kAskServers.end(), file_system) == kAskServers.end();
}

CachedBy cached_by(int fd) noexcept {
    struct statfs system {};
    if (::fstatfs(fd, &system) != 0) return CachedBy::others;
    const Magic* kind = kind_of(static_cast<std::uint64_t>(system.f_type));
    return kind == nullptr ? CachedBy::others : kind->cached_by;
}

const char* to_string(FileType type) noexcept {
    switch (type) {
        case FileType::regular:
            return "regular file";
        case FileType::directory:
            return "directory";
        case FileType::fifo:
            return "pipe";
        case FileType::device:
            return "device";
        case FileType::other:
            return "other";
    }
    return "other";
}

bool of_huge_pages(int fd) noexcept {
    struct statfs system {};
    return ::fstatfs(fd, &system) == 0 && (static_cast<std::uint64_t>(system.f_type) & 0xFFFFFFFFu) == kHugetlbfsMagic;
}

std::uint64_t mapping_page_bytes(int fd) noexcept {
    struct statfs system {};
    if (of_huge_pages(fd) && ::fstatfs(fd, &system) == 0) return static_cast<std::uint64_t>(system.f_bsize);
    return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

FileStat stat_without_mount(int fd, const std::string& name) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) throw Error(errno_info("fstat", name, errno));
    FileStat facts;
    facts.type = type_of(status.st_mode);
    facts.size_bytes = static_cast<std::uint64_t>(status.st_size);
    facts.allocated_bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;  // st_blocks counts units of 512 bytes
    facts.block_bytes = static_cast<std::uint32_t>(status.st_blksize);
    facts.device_major = major(status.st_dev);
    facts.device_minor = minor(status.st_dev);
    struct statfs system {};
    if (::fstatfs(fd, &system) == 0) {
        const auto magic = static_cast<std::uint64_t>(system.f_type);
        facts.file_system = facts.kind = file_system_from_magic(magic);
        facts.unit_bytes = static_cast<std::uint64_t>(system.f_bsize);
        if (const Magic* kind = kind_of(magic)) {
            facts.cached_by = kind->cached_by;
            facts.is_made_by_kernel = kind->is_made_by_kernel;
        }
    }
    return facts;
}

FileStat file_stat(int fd, const std::string& name) {
    FileStat facts = stat_without_mount(fd, name);
    Mount mount;
    if (find_mount(fd, mount)) {
        facts.file_system = mount.file_system;
        facts.mount_point = mount.mount_point;
        facts.mount_options = mount.options;
    }
    return facts;
}

}  // namespace penstock::os
