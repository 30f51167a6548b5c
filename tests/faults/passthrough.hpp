// Performs every operation of a file system on a backing folder and answers the kernel. It decides no faults: the
// server applies its rules first and passes on the rest of the operation.
#pragma once

#include <dirent.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <algorithm>

#include "record.hpp"
#include "tree.hpp"
#include "wire.hpp"

namespace faults {

struct Options {
    bool write_back = false;  // the kernel caches writes and sends them later
    bool direct = false;      // the kernel caches nothing
    bool unnamed = true;      // O_TMPFILE
};

class Passthrough {
  public:
    Passthrough(int root, Options options, Record& record) : tree_(root), options_(options), record_(record) {}

    std::shared_ptr<Node> at(std::uint64_t id) { return tree_.at(id); }

    // Serves names, attributes and folders. Returns false for other operations, which it leaves to the caller.
    bool serve_names(const Request& request) {
        const auto node = tree_.at(request.head.nodeid);
        if (!node) return request.fail(ESTALE), true;
        const int folder = node->descriptor;
        switch (request.head.opcode) {
            case FUSE_LOOKUP:
                look_up(request, folder, request.text());
                return true;
            case FUSE_GETATTR:
                attributes(request, *node);
                return true;
            case FUSE_SETATTR:
                set_attributes(request, *node);
                return true;
            case FUSE_READLINK:
                read_link(request, *node);
                return true;
            case FUSE_SYMLINK: {
                const auto name = request.text();
                made(request, folder, name, symlinkat(request.text(name.size() + 1).c_str(), folder, name.c_str()));
                return true;
            }
            case FUSE_MKNOD: {
                const auto in = request.as<fuse_mknod_in>();
                const auto name = request.text(sizeof in);
                made(request, folder, name, mknodat(folder, name.c_str(), in.mode, in.rdev));
                return true;
            }
            case FUSE_MKDIR: {
                const auto in = request.as<fuse_mkdir_in>();
                const auto name = request.text(sizeof in);
                made(request, folder, name, mkdirat(folder, name.c_str(), in.mode));
                return true;
            }
            case FUSE_UNLINK:
                request.result(unlinkat(folder, request.text().c_str(), 0));
                return true;
            case FUSE_RMDIR:
                request.result(unlinkat(folder, request.text().c_str(), AT_REMOVEDIR));
                return true;
            case FUSE_RENAME:
                rename(request, folder, sizeof(fuse_rename_in), 0);
                return true;
            case FUSE_RENAME2:
                rename(request, folder, sizeof(fuse_rename2_in), request.as<fuse_rename2_in>().flags);
                return true;
            case FUSE_LINK:
                link(request, folder);
                return true;
            case FUSE_STATFS:
                file_system(request, *node);
                return true;
            default:
                return serve_xattrs(request, *node);
        }
    }

    // Serves open files and moves at most `most` bytes. Returns false for other operations.
    bool serve_files(const Request& request, std::size_t most) {
        const auto node = tree_.at(request.head.nodeid);
        if (!node) return request.fail(ESTALE), true;
        switch (request.head.opcode) {
            case FUSE_OPEN:
                open(request, *node, request.as<fuse_open_in>().flags);
                return true;
            case FUSE_CREATE:
            case kTmpfile:
                create(request, *node);
                return true;
            case FUSE_READ:
                read(request, most);
                return true;
            case FUSE_WRITE:
                write(request, most);
                return true;
            case FUSE_FLUSH:
                request.done();
                return true;
            case FUSE_FSYNC:
                sync(request);
                return true;
            case FUSE_FALLOCATE:
                allocate(request);
                return true;
            case FUSE_RELEASE:
                close(static_cast<int>(request.as<fuse_release_in>().fh)), request.done();
                return true;
            case FUSE_OPENDIR:
                open_folder(request, *node);
                return true;
            case FUSE_READDIR:
                read_folder(request);
                return true;
            case FUSE_FSYNCDIR:
                request.result(fsync(dirfd(folder_of(request.as<fuse_fsync_in>().fh))));
                return true;
            case FUSE_RELEASEDIR:
                closedir(folder_of(request.as<fuse_release_in>().fh)), request.done();
                return true;
            default:
                return false;
        }
    }

    void forget(std::uint64_t id, std::uint64_t times) { tree_.forget(id, times); }

  private:
    static DIR* folder_of(std::uint64_t handle) { return reinterpret_cast<DIR*>(handle); }

    static fuse_attr attr_of(const struct stat& facts) {
        fuse_attr attr{};
        attr.ino = facts.st_ino;
        attr.size = static_cast<std::uint64_t>(facts.st_size);
        attr.blocks = static_cast<std::uint64_t>(facts.st_blocks);
        attr.atime = static_cast<std::uint64_t>(facts.st_atim.tv_sec);
        attr.mtime = static_cast<std::uint64_t>(facts.st_mtim.tv_sec);
        attr.ctime = static_cast<std::uint64_t>(facts.st_ctim.tv_sec);
        attr.atimensec = static_cast<std::uint32_t>(facts.st_atim.tv_nsec);
        attr.mtimensec = static_cast<std::uint32_t>(facts.st_mtim.tv_nsec);
        attr.ctimensec = static_cast<std::uint32_t>(facts.st_ctim.tv_nsec);
        attr.mode = facts.st_mode;
        attr.nlink = static_cast<std::uint32_t>(facts.st_nlink);
        attr.uid = facts.st_uid;
        attr.gid = facts.st_gid;
        attr.rdev = static_cast<std::uint32_t>(facts.st_rdev);
        attr.blksize = static_cast<std::uint32_t>(facts.st_blksize);
        return attr;
    }

    void look_up(const Request& request, int folder, const std::string& name) {
        fuse_entry_out out{};
        if (!entry(openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC), name, out))
            return request.fail(errno);
        request.answer(out);
    }

    // Takes the descriptor. The kernel caches nothing, so it sees changes in the backing folder at once.
    bool entry(int descriptor, const std::string& name, fuse_entry_out& out) {
        struct stat facts {};
        if (descriptor < 0 || fstat(descriptor, &facts) != 0) return false;
        out.nodeid = tree_.add(descriptor, facts, name);
        out.attr = attr_of(facts);
        return true;
    }

    void attributes(const Request& request, const Node& node) {
        struct stat facts {};
        if (fstat(node.descriptor, &facts) != 0) return request.fail(errno);
        fuse_attr_out out{};
        out.attr = attr_of(facts);
        request.answer(out);
    }

    void set_attributes(const Request& request, const Node& node) {
        const auto in = request.as<fuse_setattr_in>();
        const auto path = node.path();
        const auto failed = [&](int result) { return result != 0 && (request.fail(errno), true); };
        if ((in.valid & FATTR_MODE) != 0 && failed(chmod(path.c_str(), in.mode & 07777U))) return;
        const auto uid = (in.valid & FATTR_UID) != 0 ? in.uid : static_cast<uid_t>(-1);
        const auto gid = (in.valid & FATTR_GID) != 0 ? in.gid : static_cast<gid_t>(-1);
        if ((in.valid & (FATTR_UID | FATTR_GID)) != 0 && failed(chown(path.c_str(), uid, gid))) return;
        if ((in.valid & FATTR_SIZE) != 0 && failed(truncate(path.c_str(), static_cast<off_t>(in.size)))) return;
        const auto time = [&](unsigned set, unsigned now, std::uint64_t seconds,
                              std::uint32_t nanoseconds) -> timespec {
            if ((in.valid & now) != 0) return {0, UTIME_NOW};
            if ((in.valid & set) == 0) return {0, UTIME_OMIT};
            return {static_cast<time_t>(seconds), static_cast<long>(nanoseconds)};
        };
        const std::array<timespec, 2> times{time(FATTR_ATIME, FATTR_ATIME_NOW, in.atime, in.atimensec),
                                            time(FATTR_MTIME, FATTR_MTIME_NOW, in.mtime, in.mtimensec)};
        const bool timed = (in.valid & (FATTR_ATIME | FATTR_MTIME)) != 0;
        if (timed && failed(utimensat(AT_FDCWD, path.c_str(), times.data(), 0))) return;
        attributes(request, node);
    }

    static void read_link(const Request& request, const Node& node) {
        std::array<char, 4096> target{};
        const auto length = readlinkat(node.descriptor, "", target.data(), target.size());
        if (length < 0) return request.fail(errno);
        request.send(0, std::as_bytes(std::span(target.data(), static_cast<std::size_t>(length))));
    }

    void made(const Request& request, int folder, const std::string& name, int result) {
        if (result != 0) return request.fail(errno);
        give(request, folder, name);
        look_up(request, folder, name);
    }

    // What a client makes belongs to the client and not to the server.
    static void give(const Request& request, int folder, const std::string& name) {
        if (request.head.uid == geteuid() && request.head.gid == getegid()) return;
        [[maybe_unused]] const int given =
            fchownat(folder, name.c_str(), request.head.uid, request.head.gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    }

    void rename(const Request& request, int folder, std::size_t names, unsigned flags) {
        const auto target = tree_.at(request.as<fuse_rename_in>().newdir);
        const auto from = request.text(names), to = request.text(names + from.size() + 1);
        if (!target) return request.fail(ESTALE);
        request.result(renameat2(folder, from.c_str(), target->descriptor, to.c_str(), flags));
    }

    void link(const Request& request, int folder) {
        const auto source = tree_.at(request.as<fuse_link_in>().oldnodeid);
        const auto name = request.text(sizeof(fuse_link_in));
        if (!source) return request.fail(ESTALE);
        const auto path = source->path();
        if (linkat(AT_FDCWD, path.c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) != 0) return request.fail(errno);
        look_up(request, folder, name);
    }

    static void file_system(const Request& request, const Node& node) {
        struct statvfs facts {};
        if (fstatvfs(node.descriptor, &facts) != 0) return request.fail(errno);
        fuse_statfs_out out{};
        out.st.blocks = facts.f_blocks;
        out.st.bfree = facts.f_bfree;
        out.st.bavail = facts.f_bavail;
        out.st.files = facts.f_files;
        out.st.ffree = facts.f_ffree;
        out.st.bsize = static_cast<std::uint32_t>(facts.f_bsize);
        out.st.frsize = static_cast<std::uint32_t>(facts.f_frsize);
        out.st.namelen = static_cast<std::uint32_t>(facts.f_namemax);
        request.answer(out);
    }

    static bool serve_xattrs(const Request& request, const Node& node) {
        const auto path = node.path();
        switch (request.head.opcode) {
            case FUSE_SETXATTR: {
                // the short form, because the long one was not negotiated
                const auto in = request.as<fuse_setxattr_in>();
                const auto name = request.text(FUSE_COMPAT_SETXATTR_IN_SIZE);
                const auto* value = request.body().data() + FUSE_COMPAT_SETXATTR_IN_SIZE + name.size() + 1;
                request.result(setxattr(path.c_str(), name.c_str(), value, in.size, static_cast<int>(in.flags)));
                return true;
            }
            case FUSE_REMOVEXATTR:
                request.result(removexattr(path.c_str(), request.text().c_str()));
                return true;
            case FUSE_GETXATTR:
            case FUSE_LISTXATTR: {
                const auto in = request.as<fuse_getxattr_in>();
                const bool list = request.head.opcode == FUSE_LISTXATTR;
                const auto name = request.text(sizeof in);
                std::vector<char> value(in.size);
                const auto length = list ? listxattr(path.c_str(), value.data(), in.size)
                                         : getxattr(path.c_str(), name.c_str(), value.data(), in.size);
                if (length < 0)
                    request.fail(errno);
                else if (in.size == 0)
                    request.answer(fuse_getxattr_out{static_cast<std::uint32_t>(length), 0});
                else
                    request.send(0, std::as_bytes(std::span(value.data(), static_cast<std::size_t>(length))));
                return true;
            }
            default:
                return false;
        }
    }

    // The kernel handles the position of appends, and reads pages that it overwrites in part. So the backing file gets
    // neither O_APPEND nor write-only mode.
    int backing_flags(unsigned flags) const {
        auto kept = static_cast<int>(flags) & ~(O_APPEND | O_DIRECT | O_EXCL | O_CREAT | O_NOFOLLOW);
        if (options_.write_back && (kept & O_ACCMODE) == O_WRONLY) kept = (kept & ~O_ACCMODE) | O_RDWR;
        return kept | O_CLOEXEC;
    }

    fuse_open_out opened(int descriptor) const {
        fuse_open_out out{};
        out.fh = static_cast<std::uint64_t>(descriptor);
        out.open_flags = options_.direct ? FOPEN_DIRECT_IO : 0;
        return out;
    }

    void open(const Request& request, const Node& node, unsigned flags) {
        const int descriptor = ::open(node.path().c_str(), backing_flags(flags));
        if (descriptor < 0) return request.fail(errno);
        request.answer(opened(descriptor));
    }

    void create(const Request& request, const Node& folder) {
        const auto in = request.as<fuse_create_in>();
        const bool unnamed = request.head.opcode == kTmpfile;
        if (unnamed && !options_.unnamed) return request.fail(ENOSYS);
        const auto name = unnamed ? std::string(".") : request.text(sizeof in);
        const int how = unnamed ? O_TMPFILE : O_CREAT | (static_cast<int>(in.flags) & O_EXCL);
        const int descriptor = openat(folder.descriptor, name.c_str(), backing_flags(in.flags) | how, in.mode);
        if (descriptor < 0) return request.fail(errno);
        const auto by = "/proc/self/fd/" + std::to_string(descriptor);
        const int named = ::open(by.c_str(), O_PATH | O_CLOEXEC);
        if (named >= 0) give(request, named, "");
        fuse_entry_out out{};
        if (!entry(named, unnamed ? "" : name, out)) return request.fail(errno), void(close(descriptor));
        request.answer(out, opened(descriptor));
    }

    static void read(const Request& request, std::size_t most) {
        const auto in = request.as<fuse_read_in>();
        std::vector<std::byte> bytes(std::min<std::size_t>(in.size, most));
        const auto got = pread(static_cast<int>(in.fh), bytes.data(), bytes.size(), static_cast<off_t>(in.offset));
        if (got < 0) return request.fail(errno);
        request.send(0, std::span(bytes).first(static_cast<std::size_t>(got)));
    }

    void write(const Request& request, std::size_t most) {
        const auto in = request.as<fuse_write_in>();
        const auto data = request.body().subspan(sizeof in, std::min<std::size_t>(in.size, most));
        const auto put = pwrite(static_cast<int>(in.fh), data.data(), data.size(), static_cast<off_t>(in.offset));
        if (put < 0) return request.fail(errno);
        record_.write(in.offset, data.first(static_cast<std::size_t>(put)));
        request.answer(fuse_write_out{static_cast<std::uint32_t>(put), 0});
    }

    // A flush makes only those writes durable that ended before it began, so it is recorded when it begins.
    void sync(const Request& request) {
        record_.flush();
        request.result(record_.on() ? 0 : fsync(static_cast<int>(request.as<fuse_fsync_in>().fh)));
    }

    void allocate(const Request& request) {
        const auto in = request.as<fuse_fallocate_in>();
        const auto mode = static_cast<int>(in.mode);
        const auto offset = static_cast<off_t>(in.offset), length = static_cast<off_t>(in.length);
        const int result = fallocate(static_cast<int>(in.fh), mode, offset, length);
        if (result == 0 && (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0)
            record_.zero(in.offset, in.length);
        request.result(result);
    }

    static void open_folder(const Request& request, const Node& node) {
        const int descriptor = ::open(node.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (descriptor < 0) return request.fail(errno);
        fuse_open_out out{};
        out.fh = reinterpret_cast<std::uint64_t>(fdopendir(descriptor));
        request.answer(out);
    }

    static void read_folder(const Request& request) {
        const auto in = request.as<fuse_read_in>();
        DIR* folder = folder_of(in.fh);
        seekdir(folder, static_cast<long>(in.offset));
        std::vector<std::byte> bytes;
        for (const dirent* one = readdir(folder); one != nullptr; one = readdir(folder)) {
            const auto length = std::strlen(one->d_name);
            const auto size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
            if (bytes.size() + size > in.size) break;
            const fuse_dirent head{one->d_ino, static_cast<std::uint64_t>(one->d_off),
                                   static_cast<std::uint32_t>(length), one->d_type};
            const auto at = bytes.size();
            bytes.resize(at + size);
            std::memcpy(bytes.data() + at, &head, FUSE_NAME_OFFSET);
            std::memcpy(bytes.data() + at + FUSE_NAME_OFFSET, one->d_name, length);
        }
        request.send(0, bytes);
    }

    Tree tree_;
    Options options_;
    Record& record_;
};

}  // namespace faults
