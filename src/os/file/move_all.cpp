// See move_all.hpp.
#include "os/file/move_all.hpp"

#include <cerrno>
#include <chrono>
#include <thread>

namespace penstock::os {
namespace {

constexpr std::uint32_t kRetriesMax = 200;
constexpr std::uint32_t kRetriesAtOnce = 20;  // without a wait in between
constexpr std::chrono::microseconds kRetryWait{100};

ssize_t call(System& system, const FileMove& move, std::uint64_t moved) {
    std::byte* memory = move.memory + moved;
    const std::uint64_t bytes = move.bytes - moved, offset = move.offset_bytes + moved;
    return move.direction == Direction::read ? system.pread(move.fd, memory, bytes, offset)
                                             : system.pwrite(move.fd, memory, bytes, offset);
}

}  // namespace

bool try_again(int error_number, std::uint32_t& retries) {
    if (error_number != EINTR && error_number != EAGAIN) return false;
    if (retries >= kRetriesMax) return false;
    if (++retries > kRetriesAtOnce) std::this_thread::sleep_for(kRetryWait);
    return true;
}

FileMoved move_all(System& system, const FileMove& move) {
    const bool read = move.direction == Direction::read;
    FileMoved moved;
    for (std::uint32_t retries = 0; moved.bytes < move.bytes;) {
        const ssize_t count = call(system, move, moved.bytes);
        ++moved.calls;
        if (count > 0) {
            moved.bytes += static_cast<std::uint64_t>(count);
            retries = 0;
            const bool ended_in_block = read && moved.bytes < move.bytes && moved.bytes % move.block_bytes != 0;
            if (ended_in_block) break;
        } else if (count == 0) {
            if (!read) moved.error_number = EIO;
            break;
        } else if (const int number = errno; !try_again(number, retries)) {
            moved.error_number = number;
            break;
        }
    }
    return moved;
}

}  // namespace penstock::os
