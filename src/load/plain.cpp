// See plain.hpp.
#include "load/plain.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "os/refusal.hpp"

namespace penstock::load {
namespace {

ErrorInfo failed(const char* operation, const Range& range, int error_number) {
    ErrorInfo info = errno_info(operation, range.file->name(), error_number);
    info.offset_bytes = range.offset_bytes;
    info.length_bytes = range.bytes;
    return info;
}

}  // namespace

PlainStaging::PlainStaging(Device& device, std::uint64_t bytes)
    : device_(device), arena_(os::ArenaOptions{.bytes = bytes, .numa_node = device.info().numa_node}) {
    arena_.touch();
    std::string why;
    if (!device_.register_host(arena_.memory().data(), arena_.bytes(), false, why)) {
        throw Error(ErrorCode::unsupported, "measure load",
                    "the device does not lock " + std::to_string(arena_.bytes()) + " bytes of host memory: " + why);
    }
}

PlainStaging::~PlainStaging() { device_.unregister_host(arena_.memory().data()); }

Plain::Plain(Device& device, const File& file, const Options& options) : options_(options) {
    const int flags = (options.writes ? O_RDWR : O_RDONLY) | (options.direct ? O_DIRECT : 0) | O_CLOEXEC;
    const int fd = os::real_system().open(file.name().c_str(), flags, 0);
    if (fd < 0) os::refuse("open", file.name(), errno);
    fd_ = os::UniqueFd(fd);
    if (options.staging != nullptr) stream_ = device.make_stream();
}

std::uint64_t Plain::read(const Range& range, std::byte* into, ErrorInfo& error) {
    std::uint64_t moved = 0;
    while (moved < range.bytes) {
        const auto got =
            os::real_system().pread(fd_.get(), into + moved, range.bytes - moved, range.offset_bytes + moved);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) error = failed("read", range, errno);
        if (got <= 0) break;
        moved += static_cast<std::uint64_t>(got);
    }
    return moved;
}

std::uint64_t Plain::write(const Range& range, const std::byte* from, ErrorInfo& error) {
    std::uint64_t moved = 0;
    while (moved < range.bytes) {
        const auto put =
            os::real_system().pwrite(fd_.get(), from + moved, range.bytes - moved, range.offset_bytes + moved);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            error = failed("write", range, put < 0 ? errno : EIO);
            break;
        }
        moved += static_cast<std::uint64_t>(put);
    }
    return moved;
}

Outcome Plain::move(Direction direction, const Range& range) {
    Outcome outcome;
    auto* host = options_.staging != nullptr ? options_.staging : static_cast<std::byte*>(range.memory);
    if (direction == Direction::read) {
        outcome.bytes = read(range, host, outcome.error);
        if (stream_ && outcome.bytes > 0) {
            stream_->copy(CopyDirection::to_device, range.memory, host, outcome.bytes);
            stream_->synchronize();
        }
    } else {
        if (stream_) {
            stream_->copy(CopyDirection::to_host, host, range.memory, range.bytes);
            stream_->synchronize();
        }
        outcome.bytes = write(range, host, outcome.error);
    }
    PathShare share;
    share.path = options_.direct ? PathKind::direct : PathKind::buffered;
    share.bytes = outcome.bytes;
    outcome.evidence.paths.push_back(share);
    return outcome;
}

}  // namespace penstock::load
