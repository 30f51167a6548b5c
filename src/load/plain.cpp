// See plain.hpp.
#include "load/plain.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "os/file/move_all.hpp"
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

Plain::Plain(Device& device, const File& file, const Settings& options) : options_(options) {
    const int flags = (options.writes ? O_RDWR : O_RDONLY) | (options.direct ? O_DIRECT : 0) | O_CLOEXEC;
    const int fd = os::real_system().open(file.name().c_str(), flags, 0);
    if (fd < 0) os::refuse("open", file.name(), errno);
    fd_ = os::UniqueFd(fd);
    if (options.staging != nullptr) stream_ = device.make_stream();
}

std::uint64_t Plain::move_all(Direction direction, const Range& range, std::byte* host, ErrorInfo& error) const {
    const os::FileMoved moved = os::move_all(
        os::real_system(), {.direction = direction,
                            .fd = fd_.get(),
                            .memory = host,
                            .bytes = range.bytes,
                            .offset_bytes = range.offset_bytes});
    if (moved.error_number != 0) error = failed(to_string(direction), range, moved.error_number);
    return moved.bytes;
}

Outcome Plain::move(Direction direction, const Range& range) {
    Outcome outcome;
    auto* host = options_.staging != nullptr ? options_.staging : static_cast<std::byte*>(range.memory);
    if (direction == Direction::read) {
        outcome.bytes = move_all(direction, range, host, outcome.error);
        if (stream_ && outcome.bytes > 0) {
            stream_->copy(CopyDirection::to_device, range.memory, host, outcome.bytes);
            stream_->synchronize();
        }
    } else {
        if (stream_) {
            stream_->copy(CopyDirection::to_host, host, range.memory, range.bytes);
            stream_->synchronize();
        }
        outcome.bytes = move_all(direction, range, host, outcome.error);
    }
    PathShare share;
    share.path = options_.direct ? PathKind::direct : PathKind::buffered;
    share.bytes = outcome.bytes;
    outcome.evidence.paths.push_back(share);
    return outcome;
}

}  // namespace penstock::load
