// See uring_files.hpp.
#include "path/queued/uring_files.hpp"

#include <liburing.h>

#include <algorithm>
#include <cerrno>

namespace penstock::path {

// An array of -1 makes an empty table on every kernel that has io_uring. The sparse flag would need Linux 5.19.
RingFiles::RingFiles(os::System& system, int ring_fd, std::uint32_t register_from)
    : system_(system), ring_fd_(ring_fd), register_from_(register_from) {
    std::array<std::int32_t, kSlots> nothing;
    nothing.fill(-1);
    if (system_.io_uring_register(ring_fd_, IORING_REGISTER_FILES, nothing.data(), kSlots) != 0) refusal_ = errno;
}

// Returns kNoSlot if no slot has this descriptor.
std::uint32_t RingFiles::find(int fd) const noexcept {
    const auto found = std::find_if(slots_.begin(), slots_.end(), [fd](const FileSlot& slot) { return slot.fd == fd; });
    return static_cast<std::uint32_t>(found - slots_.begin());
}

std::uint32_t RingFiles::begin_other(int fd, std::size_t run) noexcept {
    if (fd < 0) return kNoSlot;
    std::uint32_t slot = filled_ == 0 ? kNoSlot : find(fd);
    if (slot == kNoSlot) {
        if (fd != row_fd_) row_ = 0;
        row_fd_ = fd;
        if (!worth(row_++ + run) || refusal_ != 0) return kNoSlot;
        slot = find(-1);
        if (slot == kNoSlot || !update(slot, fd)) return kNoSlot;
        slots_[slot].fd = fd;
        ++filled_;
    }
    ++slots_[slot].in_flight;
    return last_ = slot;
}

// After a refusal no operation uses a slot. The whole table is then unregistered when its last slot becomes empty.
void RingFiles::empty(std::uint32_t slot) noexcept {
    update(slot, -1);
    slots_[slot].fd = -1;
    if (--filled_ == 0 && refusal_ != 0) system_.io_uring_register(ring_fd_, IORING_UNREGISTER_FILES, nullptr, 0);
}

// EBADF means that the descriptor is closed. That is no refusal: operations on it report the error themselves.
bool RingFiles::update(std::uint32_t slot, int fd) noexcept {
    std::int32_t entry = fd;
    io_uring_files_update change{};
    change.offset = slot;
    change.fds = reinterpret_cast<std::uintptr_t>(&entry);
    if (system_.io_uring_register(ring_fd_, IORING_REGISTER_FILES_UPDATE, &change, 1) == 1) return true;
    if (errno != EBADF) refusal_ = errno;
    return false;
}

}  // namespace penstock::path
