// See open_file.hpp. Order of a durable publish: data and inode to storage, then the name, then the directory.
#include "context/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace penstock::context {
namespace {

constexpr unsigned kNewFileMode = 0666;  // less the umask
constexpr int kTemporaryNames = 1000;    // tried before giving up
constexpr std::size_t kNamePart = 100;   // of the target's name in a temporary's: together they must fit NAME_MAX

std::string directory_of(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : name.substr(0, slash);
}

std::string base_of(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    return slash == std::string::npos ? name : name.substr(slash + 1);
}

// What a new file replaces: where symbolic links lead, there or not. A loop is left to the system to refuse.
std::string target_of(const std::string& name) {
    constexpr int kLinksMax = 40;  // as Linux
    std::filesystem::path path(name);
    std::error_code error;
    for (int i = 0; i < kLinksMax && std::filesystem::is_symlink(path, error); ++i) {
        const std::filesystem::path target = std::filesystem::read_symlink(path, error);
        if (error) break;
        path = path.parent_path() / target;  // an absolute one stays itself
    }
    return path.string();
}

// Unique in the process, not in a context: libcufile has one driver in a process, and its handles are found by this.
std::uint64_t next_file_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

// Signals may interrupt these calls on NFS and FUSE.
template <typename Call>
int again_if_interrupted(const Call& call) {
    int result = 0;
    do {
        result = call();
    } while (result != 0 && errno == EINTR);
    return result;
}

const char* open_advice(int error_number) {
    switch (error_number) {
        case ENOENT: return "check the path";
        case EACCES:
        case EPERM: return "check the permissions of the file and its directories";
        case EROFS: return "the file system is mounted read-only";
        case ENOSPC: return "free space on the file system or write less";
        case EFBIG: return "raise the limit on file sizes (ulimit -f), or use a file system for larger files";
        case ENAMETOOLONG: return "give a shorter name";
        case ELOOP: return "its symbolic links lead in a circle: name the file itself";
        case EMFILE: return "raise the limit of open files (ulimit -n)";
        default: return "";
    }
}

}  // namespace

OpenFile::OpenFile(os::System& system, const std::string& name, const OpenOptions& options)
    : system_(system),
      options_(options),
      target_(options.mode == OpenMode::create ? target_of(name) : name),
      directory_(directory_of(target_)) {
    handle_.id = next_file_id();
    handle_.name = name;
    handle_.writable = options.mode != OpenMode::read;
    if (options.mode == OpenMode::create) {
        open_new(options);
    } else {
        open_existing(options);
    }
    handle_.buffered_fd = buffered_.get();
    os::DirectFile direct = os::open_direct(system_, buffered_.get());
    direct_fd_ = std::move(direct.fd);
    direct_ = std::move(direct.facts);
    handle_.direct_fd = direct_fd_.get();
    if (direct_.usable) {
        handle_.offset_alignment = direct_.offset_alignment;
        handle_.memory_alignment = direct_.memory_alignment;
    }
}

OpenFile::~OpenFile() {
    if (!process_.here()) {  // a forked child: mappings, registrations and the temporary are the parent's
        static_cast<void>(std::make_unique<std::function<void()>>(std::move(on_let_go)).release());
        return;
    }
    if (on_let_go) on_let_go();
    if (!temporary_.empty()) system_.unlink(temporary_.c_str());
}

void OpenFile::fail(const char* operation, int error_number, const char* advice) const {
    ErrorInfo info = errno_info(operation, handle_.name, error_number);
    info.advice = *advice != 0 ? advice : open_advice(error_number);
    throw Error(std::move(info));
}

void OpenFile::open_existing(const OpenOptions& options) {
    // O_NONBLOCK: opening a FIFO must not wait for a writer; regular files do not notice it.
    const int flags = (options.mode == OpenMode::read ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK;
    buffered_ = os::UniqueFd(system_.open(handle_.name.c_str(), flags, 0), system_);
    if (!buffered_) {
        // ENXIO: a FIFO without a reader, a socket, a device without a driver.
        if (errno != EISDIR && errno != ENXIO) fail("open", errno);
    } else {
        facts_ = os::facts_without_mount(buffered_.get(), handle_.name);
    }
    if (buffered_ && facts_.type == os::FileType::regular) {
        // cuFile refuses descriptors with flags it does not know (5019).
        ::fcntl(buffered_.get(), F_SETFL, ::fcntl(buffered_.get(), F_GETFL) & ~O_NONBLOCK);
        return;
    }
    ErrorInfo info;
    info.code = ErrorCode::not_a_regular_file;
    info.operation = "open";
    info.file = handle_.name;
    info.cause = buffered_ ? std::string("this is a ") + os::to_string(facts_.type) + ", not a regular file"
                           : "this is a directory or special file, not a regular file";
    info.advice = "give a regular file";
    throw Error(std::move(info));
}

void OpenFile::open_new(const OpenOptions& options) {
    struct stat existing{};
    if (handle_.name.empty() || base_of(handle_.name).empty()) fail("create", EISDIR, "give a file name");
    if (::stat(handle_.name.c_str(), &existing) == 0) {
        if (!S_ISREG(existing.st_mode)) {
            ErrorInfo info = errno_info("create", handle_.name, S_ISDIR(existing.st_mode) ? EISDIR : EINVAL);
            info.code = ErrorCode::not_a_regular_file;
            info.cause = "something that is not a regular file has this name";
            info.advice = "give another name";
            throw Error(std::move(info));
        }
        if (!options.replace) fail("create", EEXIST, "remove the file or allow replacing it");
    } else if (errno != ENOENT) {
        fail("create", errno);
    }
    buffered_ = os::UniqueFd(system_.open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kNewFileMode), system_);
    if (!buffered_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) open_temporary();
    if (!buffered_) {
        const int number = errno;
        temporary_.clear();
        fail("create", number);
    }
    try {
        facts_ = os::facts_without_mount(buffered_.get(), handle_.name);
        if (options.size_bytes != 0) reserve(options.size_bytes);
    } catch (...) {  // a constructor that throws runs no destructor
        if (!temporary_.empty()) system_.unlink(temporary_.c_str());
        throw;
    }
}

std::string OpenFile::temporary_name(int attempt) const {
    return directory_ + "/." + base_of(target_).substr(0, kNamePart) + ".penstock-" + std::to_string(::getpid()) +
           "-" + std::to_string(handle_.id) + "-" + std::to_string(attempt);
}

// A name may be taken: by a killed process of our number (1 in every container), by another machine on a shared disk.
void OpenFile::open_temporary() {
    for (int attempt = 0; attempt < kTemporaryNames; ++attempt) {
        temporary_ = temporary_name(attempt);
        buffered_ = os::UniqueFd(system_.open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kNewFileMode),
                                 system_);
        if (buffered_ || errno != EEXIST) return;
    }
}

void OpenFile::reserve(std::uint64_t bytes) {
    if (again_if_interrupted([&] { return system_.fallocate(buffered_.get(), 0, bytes); }) == 0) return;
    ErrorInfo info = errno_info("reserve space for", handle_.name, errno);
    info.length_bytes = bytes;
    info.advice = open_advice(errno);
    if (errno != EOPNOTSUPP && errno != ENOSYS) throw Error(std::move(info));
    if (system_.ftruncate(buffered_.get(), bytes) != 0) fail("set the size of", errno);
}

bool OpenFile::parallel_writes() const noexcept {
    static constexpr std::array kRangeLocks{"lustre", "gpfs", "beegfs", "ceph", "panfs", "zfs"};
    return std::find(kRangeLocks.begin(), kRangeLocks.end(), facts_.file_system) != kRangeLocks.end();
}

std::uint64_t OpenFile::size_bytes() const {
    struct stat now{};
    if (::fstat(handle_.buffered_fd, &now) != 0) fail("fstat", errno);
    return static_cast<std::uint64_t>(now.st_size);
}

void OpenFile::sync() const {
    if (again_if_interrupted([&] { return system_.fdatasync(handle_.buffered_fd); }) != 0) fail("fdatasync", errno);
}

// By fallocate, which never shrinks: somebody else may have made the file larger since its size was asked.
void OpenFile::extend(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t size = size_bytes();
    if (size >= bytes) return;
    const auto reserve_rest = [&] { return system_.fallocate(handle_.buffered_fd, size, bytes - size); };
    if (again_if_interrupted(reserve_rest) == 0) return;
    if (errno != EOPNOTSUPP && errno != ENOSYS) fail("extend", errno);
    if (size_bytes() < bytes && system_.ftruncate(handle_.buffered_fd, bytes) != 0) fail("extend", errno);
}

void OpenFile::transfer_began() {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error(ErrorCode::invalid_argument, "transfer " + handle_.name, "the file is closed");
    ++transfers_;
}

void OpenFile::transfer_ended(const ErrorInfo& error, const std::shared_ptr<std::atomic<bool>>& seen) {
    const std::lock_guard lock(mutex_);
    if (!error.ok()) late_.push_back({error, seen});
    if (--transfers_ == 0) quiet_.notify_all();
}

void OpenFile::write_ended(const ErrorInfo& error, std::span<const Extent> extents) {
    const std::lock_guard lock(mutex_);
    if (!error.ok()) {
        if (damaged_.empty()) damage_ = error;
        damaged_.insert(damaged_.end(), extents.begin(), extents.end());
        return;
    }
    for (const Extent& whole : extents) {
        std::vector<Extent> left;
        const std::uint64_t whole_end = whole.offset_bytes + whole.bytes;
        for (const Extent& hole : damaged_) {
            const std::uint64_t hole_end = hole.offset_bytes + hole.bytes;
            const std::uint64_t before = std::min(hole_end, std::max(hole.offset_bytes, whole.offset_bytes));
            const std::uint64_t after = std::max(hole.offset_bytes, std::min(hole_end, whole_end));
            if (before > hole.offset_bytes) left.push_back({hole.offset_bytes, before - hole.offset_bytes});
            if (after < hole_end && after >= before) left.push_back({after, hole_end - after});
        }
        damaged_ = std::move(left);
        if (damaged_.empty()) return;
    }
}

void OpenFile::throw_late_error() {
    for (const Late& late : late_) {
        if (!late.seen->load()) throw Error(late.error);
    }
    if (damaged_.empty()) return;
    ErrorInfo info = damage_;
    info.cause = "a write into the new file failed and was not repeated: " + info.cause;
    info.advice = "the file was not given its name";
    throw Error(std::move(info));
}

bool OpenFile::closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
}

void OpenFile::close() {
    const std::lock_guard one_at_a_time(closing_);
    {
        std::unique_lock lock(mutex_);
        if (closed_) return;
        quiet_.wait(lock, [this] { return transfers_ == 0; });
        closed_ = true;
        throw_late_error();
    }
    if (options_.mode == OpenMode::create) publish();
}

void OpenFile::publish() {
    if (options_.durable && again_if_interrupted([&] { return system_.fsync(handle_.buffered_fd); }) != 0) {
        fail("fsync", errno);
    }
    if (temporary_.empty()) name_unnamed_file();
    if (!temporary_.empty()) {
        if (system_.rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename to", errno);
        temporary_.clear();
    }
    if (options_.durable) sync_directory();
}

// An O_TMPFILE cannot replace a name: where the name is taken it gets a temporary one, for rename to put in place.
void OpenFile::name_unnamed_file() {
    if (system_.link_fd(handle_.buffered_fd, target_.c_str()) == 0) return;
    if (errno != EEXIST || !options_.replace) fail("name", errno);
    for (int attempt = 0; attempt < kTemporaryNames && errno == EEXIST; ++attempt) {
        std::string name = temporary_name(attempt);
        if (system_.link_fd(handle_.buffered_fd, name.c_str()) != 0) continue;
        temporary_ = std::move(name);
        return;
    }
    fail("name", errno);
}

void OpenFile::sync_directory() {
    const os::UniqueFd directory(system_.open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), system_);
    if (!directory) fail("open the directory of", errno);
    if (again_if_interrupted([&] { return system_.fsync(directory.get()); }) != 0) {
        fail("fsync the directory of", errno);
    }
}

}  // namespace penstock::context
