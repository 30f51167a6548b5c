// See open_file.hpp.
#include "context/files/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>

#include "os/new_file/late_error.hpp"
#include "os/new_file/temporary.hpp"
#include "os/refusal.hpp"

namespace penstock::context {
namespace {

using os::again_if_interrupted;

constexpr const char* kMayBeLost = "what was written may be lost: write it again, into a new file";

// Where others may write into the folder, a writer's own temporary must not have become a link to another file.
int link_flag(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    const std::string_view base = std::string_view(name).substr(slash == std::string::npos ? 0 : slash + 1);
    return os::is_temporary(base) ? O_NOFOLLOW : 0;
}

// What is not read by offset and size would give no bytes, or some, and no error.
void refuse_text_of_kernel(const std::string& name, const os::FileStat& facts) {
    if (!facts.is_made_by_kernel) return;
    ErrorInfo info;
    info.code = ErrorCode::unsupported;
    info.operation = "open";
    info.file = name;
    info.cause = "the kernel makes its text at each read (" + facts.file_system + "), and its size says nothing";
    info.advice = "copy it into a file, with cat for example, and give that";
    throw Error(std::move(info));
}

// Unique in the process, not in a context: libcufile has one driver in a process, and its handles are found by this.
std::uint64_t next_file_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

}  // namespace

OpenFile::OpenFile(os::System& system, const std::string& name, const OpenOptions& options)
    : system_(system), options_(options) {
    handle_.id = next_file_id();
    handle_.name = name;
    handle_.writable = options.mode != OpenMode::read;
    if (options.mode == OpenMode::create) {
        open_new(options);
    } else {
        open_existing(options);
    }
    handle_.buffered_fd = new_ ? new_->fd() : buffered_.get();
    const bool is_here = facts_.cached_by == os::CachedBy::page_cache || memory_backed();
    readers_.emplace(system_, handle_.buffered_fd, is_here && !new_);
    os::DirectFile direct = os::open_direct(system_, handle_.buffered_fd, facts_);
    // Without it all transfers of the file would go through the page cache, for no reason of the file's.
    if (os::is_out_of_descriptors(direct.refusal)) fail("open", direct.refusal);
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
}

void OpenFile::fail(const char* operation, int error_number, const char* advice) const {
    os::refuse(operation, handle_.name, error_number, advice);
}

void OpenFile::open_existing(const OpenOptions& options) {
    // O_NONBLOCK: opening a FIFO must not wait for a writer; regular files do not notice it.
    const int access = options.mode == OpenMode::read ? O_RDONLY : O_RDWR;
    const int flags = access | O_CLOEXEC | O_NONBLOCK | link_flag(handle_.name);
    buffered_ = os::UniqueFd(system_.open(handle_.name.c_str(), flags, 0), system_);
    int refused = 0;
    if (!buffered_) {
        refused = errno;
        // ENXIO: a FIFO without a reader, a socket, a device without a driver.
        if (refused != EISDIR && refused != ENXIO) fail("open", refused);
    } else {
        facts_ = os::stat_without_mount(buffered_.get(), handle_.name);
        if (facts_.type == os::FileType::directory) refused = EISDIR;
    }
    if (buffered_ && facts_.type == os::FileType::regular) {
        refuse_text_of_kernel(handle_.name, facts_);
        // cuFile refuses descriptors with flags it does not know (5019).
        ::fcntl(buffered_.get(), F_SETFL, ::fcntl(buffered_.get(), F_GETFL) & ~O_NONBLOCK);
        return;
    }
    ErrorInfo info;
    info.code = ErrorCode::not_a_regular_file;
    info.system_code = refused;
    info.operation = "open";
    info.file = handle_.name;
    info.cause = buffered_ ? std::string("this is a ") + os::to_string(facts_.type) + ", not a regular file"
                           : "this is a directory or special file, not a regular file";
    info.advice = "give a regular file";
    throw Error(std::move(info));
}

void OpenFile::open_new(const OpenOptions& options) {
    const os::NewFileOptions how{.replace = options.replace, .unnamed = true};
    new_ = std::make_unique<os::NewFile>(system_, handle_.name, how);
    facts_ = os::stat_without_mount(new_->fd(), handle_.name);
    if (options.size_bytes != 0) reserve(options.size_bytes);
}

void OpenFile::reserve(std::uint64_t bytes) {
    if (again_if_interrupted([&] { return system_.fallocate(new_->fd(), 0, bytes); }) == 0) return;
    ErrorInfo info = os::refusal("reserve space for", handle_.name, errno);
    info.length_bytes = bytes;
    if (errno != EOPNOTSUPP && errno != ENOSYS) throw Error(std::move(info));
    if (system_.ftruncate(new_->fd(), bytes) != 0) fail("set the size of", errno);
}

bool OpenFile::answers_here() const noexcept {
    return os::answers_here(cached_by(), facts_.file_system);
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

void OpenFile::sync() {
    need_sound();
    if (again_if_interrupted([&] { return system_.fdatasync(handle_.buffered_fd); }) == 0) return;
    lose(os::refusal("fdatasync", handle_.name, errno, errno == ENOSPC || errno == EDQUOT ? "" : kMayBeLost));
}

void OpenFile::need_sound() const {
    const std::lock_guard lock(mutex_);
    if (!lost_.ok()) throw Error(lost_);
}

void OpenFile::lose(ErrorInfo error) {
    const std::lock_guard lock(mutex_);
    if (lost_.ok()) lost_ = std::move(error);
    throw Error(lost_);
}

// By fallocate, which never shrinks: another process may have made the file larger since its size was asked.
void OpenFile::extend(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t size = size_bytes();
    if (size >= bytes) return;
    const auto reserve_rest = [&] { return system_.fallocate(handle_.buffered_fd, size, bytes - size); };
    if (again_if_interrupted(reserve_rest) == 0) return;
    if (errno != EOPNOTSUPP && errno != ENOSYS) fail("extend", errno);
    if (size_bytes() < bytes && system_.ftruncate(handle_.buffered_fd, bytes) != 0) fail("extend", errno);
}

void OpenFile::resize(std::uint64_t bytes) {
    if (!handle_.writable) {
        throw Error(ErrorCode::invalid_argument, "set the size of " + handle_.name, "the file was opened for reading",
                    "open it with OpenMode::read_write");
    }
    const bool fits = bytes <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::lock_guard lock(mutex_);
    const auto set = [&] { return system_.ftruncate(handle_.buffered_fd, bytes); };
    if (!fits) fail("set the size of", EFBIG);
    if (again_if_interrupted(set) != 0) fail("set the size of", errno);
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
    if (!is_new()) return;
    const std::lock_guard lock(mutex_);
    if (error.ok() && holes_.empty()) return;
    if (holes_.empty()) damage_ = error;
    for (const Extent& extent : extents) {
        if (extent.file.get() != this || extent.bytes == 0) continue;
        const std::uint64_t end = extent.offset_bytes + extent.bytes;
        if (error.ok()) fill_holes(extent.offset_bytes, end);
        else holes_.push_back({extent.offset_bytes, end});
    }
}

// Requires: mutex_ is held.
void OpenFile::fill_holes(std::uint64_t start, std::uint64_t end) {
    std::vector<Hole> left;
    for (const Hole& hole : holes_) {
        const std::uint64_t before = std::min(hole.end, std::max(hole.start, start));
        const std::uint64_t after = std::max(hole.start, std::min(hole.end, end));
        if (before > hole.start) left.push_back({hole.start, before});
        if (after < hole.end && after >= before) left.push_back({after, hole.end});
    }
    holes_ = std::move(left);
}

void OpenFile::throw_late_error() {
    for (const Late& late : late_) {
        if (!late.seen->load()) throw Error(late.error);
    }
    if (holes_.empty()) return;
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
        if (closed_ && lost_.ok()) return;
        if (!lost_.ok()) {
            closed_ = true;
            throw Error(lost_);
        }
        quiet_.wait(lock, [this] { return transfers_ == 0; });
        closed_ = true;
        readers_->close();
        throw_late_error();
    }
    settle();
}

void OpenFile::settle() {
    if (new_) {
        try {
            new_->publish(options_.durable);
        } catch (const Error& error) {
            lose(error.info());
        }
    } else if (handle_.writable) {
        const bool local = os::is_local_file_system(handle_.buffered_fd);
        const int number = os::late_error(system_, handle_.buffered_fd, local);
        if (number != 0) lose(os::refusal("write", handle_.name, number));
    }
}

}  // namespace penstock::context
