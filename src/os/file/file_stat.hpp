// What the system knows of an open file: type, size, file system, mount, block device.
//
// The name of the file system comes from /proc/self/mountinfo, because ext2, ext3 and ext4 share one statfs magic
// number. The magic number decides only if mountinfo cannot be read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::os {

enum class FileType : std::uint8_t { regular, directory, fifo, device, other };

// Where the bytes of a file system's files are cached. This decides what a question about the page cache can tell.
enum class CachedBy : std::uint8_t {
    page_cache,  // in the file's own pages and nowhere else on this machine
    memory,      // tmpfs, ramfs, hugetlbfs: the pages are the file
    others,  // in another file's pages (overlay) or at a server (fuse, 9p, virtiofs); also every unknown file system
    itself,  // zfs, gpfs, panfs: in a cache of their own, which no system call shows
};

struct FileStat {
    FileType type = FileType::other;
    std::uint64_t size_bytes = 0;
    std::uint64_t allocated_bytes = 0;  // less than size_bytes: the file has holes, or is stored inline or compressed
    std::uint32_t block_bytes = 0;      // st_blksize
    std::string file_system;            // "ext4", "tmpfs", "nfs4", "lustre", "fuse.sshfs", ...
    std::string kind;                   // of file system, by its magic number: "nfs" where the mount says "nfs4"
    std::uint64_t unit_bytes = 0;       // f_bsize of statfs: of file systems on servers, what one request moves
    std::string mount_point;            // empty when mountinfo cannot be read
    std::string mount_options;          // options of the mount and of the file system, comma separated
    unsigned device_major = 0;          // of the file system; major 0: it has no block device of its own
    unsigned device_minor = 0;
    CachedBy cached_by = CachedBy::others;
    // on proc, sysfs and the like: each read makes the text anew, and the size means nothing
    bool is_made_by_kernel = false;
};

// Throws Error with operation "fstat" and `name`.
FileStat file_stat(int fd, const std::string& name);

// As above without the mount, whose search costs as much as the rest of opening a file. The file system's name then
// comes from its magic number.
FileStat stat_without_mount(int fd, const std::string& name);

// Makes one system call. Sets `name` as file_system_from_magic does.
CachedBy cached_by(int fd) noexcept;
CachedBy cached_by(int fd, std::string& name);

// Whether the page cache of this machine takes and gives the bytes of files, and no server is asked. `file_system`: as
// cached_by() names it.
bool answers_here(CachedBy cached_by, std::string_view file_system) noexcept;

// The unit in which mappings of the file begin and end: the system's page, and on hugetlbfs the file's huge page,
// because no part of that can be mapped or unmapped alone.
std::uint64_t mapping_page_bytes(int fd) noexcept;
// Returns whether the file is on hugetlbfs, which keeps all bytes in memory and accepts new ones through mappings only.
bool of_huge_pages(int fd) noexcept;

const char* to_string(FileType type) noexcept;

// Returns the name for a statfs magic number, or "unknown (0x...)".
std::string file_system_from_magic(std::uint64_t magic);

// One line of /proc/self/mountinfo. parse_mount returns false if the line has another form.
struct Mount {
    int id = 0;
    unsigned device_major = 0, device_minor = 0;
    std::string mount_point, file_system, options;
};
bool parse_mount(const std::string& line, Mount& mount);

}  // namespace penstock::os
