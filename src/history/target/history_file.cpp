// See history_file.hpp.
#include "history/target/history_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "history/target/store/spare_descriptors.hpp"
#include "os/new_file/writer_locks.hpp"

namespace penstock::history {
namespace {

// Whether the name is still that of the open file.
bool is_named(const std::string& name, const os::UniqueFd& file) {
    struct stat named {
    }, opened{};
    return ::stat(name.c_str(), &named) == 0 && ::fstat(file.get(), &opened) == 0 && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
}

// A child that was forked has the lock too: it goes for both.
void unlock(const os::UniqueFd& file) {
    struct flock lock {};
    lock.l_type = F_UNLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = os::kHistoryLockAt;
    lock.l_len = 1;
    if (!file) return;
    ::fcntl(file.get(), F_OFD_SETLK, &lock);
    ::flock(file.get(), LOCK_UN);
}

struct LockedFile {
    os::UniqueFd file;
    bool is_missing = false;
};

// No lock where the file system has none, or where the file may not be written.
LockedFile locked(const std::string& name) {
    LockedFile found{os::UniqueFd(::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK)), false};
    if (!found.file) {
        found.is_missing = errno == ENOENT;
        return found;
    }
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = os::kHistoryLockAt;
    lock.l_len = 1;
    if (::fcntl(found.file.get(), F_OFD_SETLK, &lock) == 0) {
        if (!is_named(name, found.file)) refuse_second_writer(name);  // it replaced the file since
    } else if (errno == EAGAIN || errno == EACCES) {
        refuse_second_writer(name);
    }
    return found;
}

// Programs that change the file, by HDF5's library or by penstock.open, ask for it alone and are refused. Readers share
// it. No lock where the file system has none.
void share_with_readers(const os::UniqueFd& file) {
    if (file) static_cast<void>(::flock(file.get(), LOCK_SH | LOCK_NB));
}

}  // namespace

HistoryFile::HistoryFile(const Context& context, const HistoryTargetOptions& options, std::unique_ptr<FileDraft> draft)
    : sink_(options.name, options.durable), none_(options.name), draft_(std::move(draft)) {
    if (!options.is_first) {
        draft_->pass_to(none_);
        file_ = context.open(options.name, {.mode = OpenMode::read_write});
        sink_.use(*file_);
        return;
    }
    // Of two histories that begin at once, one replaces the file, and one alone: the file that is there stays locked
    // until the new one is, and where none is there, none may come meanwhile.
    const LockedFile other = locked(options.name);
    const bool replaces = options.replace && !other.is_missing;
    SpareDescriptors spare(options.name);
    File made = context.open(options.name, {.mode = OpenMode::create, .durable = options.durable, .replace = replaces});
    sink_.use(made);
    draft_->pass_to(sink_);
    made.close();
    spare.release();
    file_ = context.open(options.name, {.mode = OpenMode::read_write});
    sink_.use(*file_);
    lock_ = locked(options.name).file;
    share_with_readers(lock_);
}

HistoryFile::~HistoryFile() { unlock(lock_); }

std::vector<formats::DataPlace> HistoryFile::reserve(std::span<const formats::StoredChunks> stored) {
    const std::lock_guard lock(mutex_);
    return draft_->reserve(stored);
}

void HistoryFile::hold(std::span<const formats::DataPlace> places) {
    std::uint64_t end = 0;
    for (const formats::DataPlace& place : places) end = std::max(end, place.offset_bytes + place.bytes);
    const std::byte last{0};
    if (file_->size_bytes() < end) sink_.write(end - 1, {&last, 1});
}

void HistoryFile::publish(std::uint64_t steps) {
    {
        const std::lock_guard lock(mutex_);
        draft_->growing().publish(steps);
    }
    need_a_name();
}

// What is written to a file without a name is lost when it is closed.
void HistoryFile::need_a_name() const {
    struct stat found {};
    if (!lock_ || ::fstat(lock_.get(), &found) != 0 || found.st_nlink != 0) return;
    refuse_target(file_->name(), "the file was removed, or another one replaced it",
                  "its steps are lost; begin another history");
}

void HistoryFile::write_numbers(std::size_t, const formats::DataPlace& place, std::span<const double> numbers) {
    sink_.write(place.offset_bytes, stored_numbers(numbers, draft_->growing().is_big_endian()));
}

void HistoryFile::close() {
    if (!file_) return;
    sink_.barrier();
    File file = *std::exchange(file_, std::nullopt);
    unlock(lock_);
    lock_.reset();
    file.close();
}

}  // namespace penstock::history
