// What the system knows of an open file: type, size, file system, mount, block device.
//
// The file system's name comes from /proc/self/mountinfo, because ext2, ext3 and ext4 share one
// statfs magic number; the magic decides only where mountinfo cannot be read.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::os {

enum class FileType : std::uint8_t { regular, directory, fifo, device, other };

// Which memory holds bytes of a file system's files: what an answer about the page cache is worth there.
enum class CachedBy : std::uint8_t {
    page_cache,  // the file's own pages and nothing else on this machine
    memory,      // tmpfs, ramfs, hugetlbfs: the pages are the file
    others,      // another file's pages (overlay) or a server (fuse, 9p, virtiofs); and all that is not known here
    itself,      // zfs, gpfs, panfs: a cache of their own, of which no system call tells
};

struct FileFacts {
    FileType type = FileType::other;
    std::uint64_t size_bytes = 0;
    std::uint64_t allocated_bytes = 0;  // less than size_bytes: the file has holes, is inline or compressed
    std::uint32_t block_bytes = 0;      // st_blksize
    std::string file_system;            // "ext4", "tmpfs", "nfs4", "lustre", "fuse.sshfs", ...
    std::string mount_point;            // empty when mountinfo cannot be read
    std::string mount_options;          // per-mount and file system options, comma separated
    unsigned device_major = 0;          // of the file system; major 0: no block device of its own
    unsigned device_minor = 0;
    CachedBy cached_by = CachedBy::others;
    bool is_made_by_kernel = false;  // of proc, sysfs and such: text that each read makes anew; the size says nothing
};

// Throws Error{fstat} naming `name`.
FileFacts file_facts(int fd, const std::string& name);

// The same without the mount, whose search costs as much as all else of opening a file: the file system by its magic.
FileFacts facts_without_mount(int fd, const std::string& name);

// By one system call. `name` as file_system_from_magic has it.
CachedBy cached_by(int fd) noexcept;
CachedBy cached_by(int fd, std::string& name);

// What mappings of a file begin and end at: the system's page, on hugetlbfs the huge page of the file, of which no part
// is mapped or unmapped by itself.
std::uint64_t mapping_page_bytes(int fd) noexcept;
// Whether it is on hugetlbfs, which keeps all bytes in memory and takes new ones by mappings only.
bool of_huge_pages(int fd) noexcept;

const char* to_string(FileType type) noexcept;

// The name for a statfs magic number; "unknown (0x...)" when we have none.
std::string file_system_from_magic(std::uint64_t magic);

// One line of /proc/self/mountinfo. False when the line has another shape.
struct Mount {
    int id = 0;
    unsigned device_major = 0, device_minor = 0;
    std::string mount_point, file_system, options;
};
bool parse_mount(const std::string& line, Mount& mount);

}  // namespace penstock::os
