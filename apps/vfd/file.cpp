// See file.hpp.
#include "vfd/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "vfd/fault.hpp"

namespace penstock::vfd {
namespace {

// A lock that was refused to the thread, of which file. h5py's mode "a" makes a new file wherever opening an old one
// failed with a driver that it does not know, and hides by that what had failed.
struct RefusedLock {
    std::uint64_t device = 0, inode = 0;
    int error = 0;
    int opens = 0;  // since then: what it is to make HDF5 first opens as an old file, to see whether it has it open
};
thread_local RefusedLock refused_lock;

// The fault where a file was to be made and is there. `before`: what the thread was refused last.
Fault there_is_one(const char* name, const RefusedLock& before) {
    struct stat found{};
    const bool same = before.error != 0 && ::stat(name, &found) == 0 && found.st_dev == before.device &&
                      found.st_ino == before.inode;
    if (same) return system_fault("lock", before.error);
    Fault fault = system_fault("create", EEXIST);
    fault.advice = "h5py's mode \"a\" comes here where it could not open the file: mode \"r+\" says why";
    return fault;
}

int open_file(const char* name, unsigned flags) {
    const RefusedLock before = refused_lock;
    if (++refused_lock.opens > 1) refused_lock = {};
    int how = O_CLOEXEC | ((flags & kWritable) != 0 ? O_RDWR : O_RDONLY);
    if ((flags & kTruncate) != 0) how |= O_TRUNC;
    if ((flags & kCreate) != 0) how |= O_CREAT;
    if ((flags & kExclusive) != 0) how |= O_EXCL;
    const int fd = ::open(name, how, 0666);
    if (fd < 0 && errno == EEXIST && (flags & kExclusive) != 0) throw there_is_one(name, before);
    if (fd < 0) throw system_fault("open", errno);
    return fd;
}

// HDF5_USE_FILE_LOCKING decides in HDF5 whether a lock is asked for. Here it decides whether a file system without
// locks is an error: only where locks are demanded.
bool locks_are_demanded() {
    const char* set = std::getenv("HDF5_USE_FILE_LOCKING");
    const std::string_view asked = set == nullptr ? "" : set;
    return asked == "TRUE" || asked == "1";
}

void call_flock(int fd, int how, const char* operation) {
    while (::flock(fd, how) != 0) {
        if (errno == EINTR) continue;
        if (errno == ENOSYS && !locks_are_demanded()) return;
        throw system_fault(operation, errno);
    }
}

// One line, added to the end at once, so that processes can share the file.
void add_line(const std::string& file, const std::string& line) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) throw system_fault("write the evidence", errno);
    const Descriptor owner(fd);
    const ssize_t put = ::write(fd, line.data(), line.size());
    if (put < 0) throw system_fault("write the evidence", errno);
    if (static_cast<std::size_t>(put) < line.size()) throw system_fault("write the evidence", ENOSPC);
}

}  // namespace

Descriptor::~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
}

void Descriptor::close() {
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) throw system_fault("close", errno);
}

File::File(const char* name, unsigned flags, const Settings& settings, const Caller& caller)
    : name_(name),
      settings_(settings),
      caller_(caller),
      descriptor_(open_file(name, flags)),
      handle_(descriptor_.get()),
      mover_({descriptor_.get(), (flags & kWritable) != 0}, settings_, tally_) {
    struct stat found{};
    if (::fstat(descriptor_.get(), &found) != 0) throw system_fault("fstat", errno);
    end_of_file_ = static_cast<Address>(found.st_size);
    device_ = found.st_dev;
    inode_ = found.st_ino;
}

int File::compare(const File& other) const noexcept {
    if (device_ != other.device_) return device_ < other.device_ ? -1 : 1;
    if (inode_ != other.inode_) return inode_ < other.inode_ ? -1 : 1;
    return 0;
}

void File::truncate() {
    if (end_of_allocation == end_of_file_) return;
    while (::ftruncate(descriptor_.get(), static_cast<off_t>(end_of_allocation)) != 0) {
        if (errno != EINTR) throw system_fault("set the size", errno, end_of_allocation, 0);
    }
    end_of_file_ = end_of_allocation;
}

void File::lock(bool exclusive) {
    try {
        call_flock(descriptor_.get(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB, "lock");
    } catch (const Fault& fault) {
        refused_lock = {device_, inode_, fault.system_code};
        throw;
    }
}

void File::unlock() { call_flock(descriptor_.get(), LOCK_UN, "unlock"); }

// HDF5's own buffer for small pieces is fast, and touches memory of the caller with the CPU.
unsigned long File::features() const noexcept {
    const unsigned long always = kGatherMetadata | kPosixHandle | kSingleWriter | kLikeDefault;
    return always | (may_be_device(settings_) ? kCopiesMemory : kSieve);
}

void File::close() {
    Fault first;
    const auto note = [&first](const Fault& fault) {
        if (first.operation.empty()) first = fault;
    };
    try {
        mover_.close();
    } catch (const Fault& fault) {
        note(fault);
    }
    try {
        descriptor_.close();
    } catch (const Fault& fault) {
        note(fault);
    }
    try {
        tell_evidence();
    } catch (const Fault& fault) {
        note(fault);
    }
    if (!first.operation.empty()) throw first;
}

void File::tell_evidence() const {
    if (settings_.evidence.empty()) return;
    const std::string line = tally_.json(name_) + "\n";
    if (settings_.evidence == "stderr") std::fputs(line.c_str(), stderr);
    else add_line(settings_.evidence, line);
}

}  // namespace penstock::vfd
