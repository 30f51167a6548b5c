// See call_files.hpp.
#include "ondevice/calls/call_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "os/file/move_all.hpp"

namespace penstock::ondevice {
namespace {

constexpr unsigned kModeOfNewFiles = 0666;  // and the process's umask

CallOutcome failed_by(int error_number) {
    const bool refused = error_number == EBADF || error_number == EROFS;
    return {refused ? Status::read_only : Status::io_error, -std::int64_t{error_number}};
}

constexpr CallOutcome kNoSuchFile{Status::invalid, -std::int64_t{EBADF}};

int flags_of_open(std::uint64_t flags) {
    const bool reads = (flags & file_read) != 0, writes = (flags & (file_write | file_append)) != 0;
    int made = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;  // a pipe without a writer would hold the thread
    made |= reads && writes ? O_RDWR : writes ? O_WRONLY : O_RDONLY;
    if ((flags & file_create) != 0) made |= O_CREAT;
    if ((flags & file_truncate) != 0) made |= O_TRUNC;
    if ((flags & file_append) != 0) made |= O_APPEND;
    if ((flags & file_new) != 0) made |= O_EXCL;
    return made;
}

}  // namespace

// One open file. The descriptor goes with the last user.
class CallFile {
  public:
    CallFile(os::System& system, int fd, bool appends) : system_(system), fd_(fd), appends_(appends) {}
    ~CallFile() {
        if (fd_ >= 0) system_.close(fd_);
    }
    CallFile(const CallFile&) = delete;
    CallFile& operator=(const CallFile&) = delete;

    CallOutcome move(const os::FileMove& wanted, bool at_its_position) {
        if (!at_its_position && !appends_) return moved(wanted);
        const std::scoped_lock lock(mutex_);  // the calls of one append stay together
        os::FileMove move = wanted;
        if (at_its_position) move.offset_bytes = position_;
        const CallOutcome outcome = moved(move);
        if (at_its_position && outcome.status == Status::ok) position_ += static_cast<std::uint64_t>(outcome.value);
        return outcome;
    }

    CallOutcome seek(std::int64_t by, SeekFrom from) {
        const std::scoped_lock lock(mutex_);
        std::int64_t start = 0;
        if (from == SeekFrom::position) start = static_cast<std::int64_t>(position_);
        if (from == SeekFrom::end) {
            struct stat found {};
            if (::fstat(fd_, &found) != 0) return failed_by(errno);
            start = found.st_size;
        }
        std::int64_t to = 0;
        if (__builtin_add_overflow(start, by, &to) || to < 0) return {Status::out_of_range, -std::int64_t{EINVAL}};
        position_ = static_cast<std::uint64_t>(to);
        return {Status::ok, to};
    }

    // Once a sync failed, it fails for ever: bytes may be lost, and the system tells that once.
    CallOutcome sync() {
        const std::scoped_lock lock(mutex_);
        for (std::uint32_t retries = 0; lost_ == 0 && system_.fdatasync(fd_) != 0;) {
            const int number = errno;
            if (os::try_again(number, retries)) continue;
            if (number == EINTR) return failed_by(number);
            lost_ = number;
        }
        return lost_ == 0 ? CallOutcome{} : failed_by(lost_);
    }

  private:
    CallOutcome moved(os::FileMove move) {
        move.fd = fd_;
        const os::FileMoved end = os::move_all(system_, move);
        if (end.error_number != 0) return failed_by(end.error_number);
        return {Status::ok, static_cast<std::int64_t>(end.bytes)};
    }

    os::System& system_;
    const int fd_;
    const bool appends_;
    std::mutex mutex_;
    std::uint64_t position_ = 0;  // guarded by mutex_, as is lost_
    int lost_ = 0;                // the errno of the first sync that failed
};

CallOutcome CallFiles::open(const std::string& name, std::uint64_t flags) {
    if ((flags & (file_read | file_write | file_append)) == 0) return {Status::invalid, -std::int64_t{EINVAL}};
    const int fd = system_.open(name.c_str(), flags_of_open(flags), kModeOfNewFiles);
    if (fd < 0) return failed_by(errno);
    auto file = std::make_shared<CallFile>(system_, fd, (flags & file_append) != 0);
    struct stat found {};
    if (::fstat(fd, &found) != 0) return failed_by(errno);
    if (!S_ISREG(found.st_mode)) return failed_by(S_ISDIR(found.st_mode) ? EISDIR : ESPIPE);
    const std::scoped_lock lock(mutex_);
    std::size_t place = 0;
    while (place < places_.size() && places_[place].file) ++place;
    if (place == most_) return failed_by(EMFILE);
    if (place == places_.size()) places_.emplace_back();
    places_[place].file = std::move(file);
    const std::uint32_t uses = ++places_[place].uses & ((1u << (31 - kPlaceBits)) - 1);
    return {Status::ok, std::int64_t{uses} << kPlaceBits | static_cast<std::int64_t>(place)};
}

std::shared_ptr<CallFile> CallFiles::at(std::uint32_t file) {
    const std::uint32_t place = file & ((1u << kPlaceBits) - 1), uses = file >> kPlaceBits;
    const std::scoped_lock lock(mutex_);
    if (place >= places_.size()) return nullptr;
    const bool same = (places_[place].uses & ((1u << (31 - kPlaceBits)) - 1)) == uses;
    return same ? places_[place].file : nullptr;
}

CallOutcome CallFiles::read(std::uint32_t file, std::uint64_t offset, std::span<std::byte> to) {
    const auto open = at(file);
    if (!open) return kNoSuchFile;
    CallOutcome outcome =
        open->move({.direction = Direction::read, .memory = to.data(), .bytes = to.size(), .offset_bytes = offset},
                   offset == at_position);
    if (outcome.status == Status::ok) outcome.answer_bytes = static_cast<std::size_t>(outcome.value);
    return outcome;
}

CallOutcome CallFiles::write(std::uint32_t file, std::uint64_t offset, std::span<const std::byte> from) {
    const auto open = at(file);
    if (!open) return kNoSuchFile;
    return open->move({.direction = Direction::write,
                       .memory = const_cast<std::byte*>(from.data()),  // a write only reads it
                       .bytes = from.size(),
                       .offset_bytes = offset},
                      offset == at_position);
}

CallOutcome CallFiles::seek(std::uint32_t file, std::int64_t by, SeekFrom from) {
    const auto open = at(file);
    return open ? open->seek(by, from) : kNoSuchFile;
}

CallOutcome CallFiles::sync(std::uint32_t file) {
    const auto open = at(file);
    return open ? open->sync() : kNoSuchFile;
}

CallOutcome CallFiles::close(std::uint32_t file) {
    const auto open = at(file);
    if (!open) return kNoSuchFile;
    const std::scoped_lock lock(mutex_);
    places_[file & ((1u << kPlaceBits) - 1)].file.reset();
    return {};
}

void CallFiles::close_all() {
    const std::scoped_lock lock(mutex_);
    for (NumberedFile& place : places_) place.file.reset();
}

}  // namespace penstock::ondevice
