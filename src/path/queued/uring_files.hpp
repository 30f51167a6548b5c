// RingFiles: which open files are registered with a ring, and for how long.
//
// A registered file is a second owner of the open file. So a slot is filled only while operations that use it are in
// flight, and is emptied before the last of them completes. Then closing the file really closes it, and a descriptor
// means one file for as long as a slot holds it. Filling and emptying a slot cost what about twenty operations save
// (docs/decisions/0007). So only a long row of operations on one file gets a slot, and all others use their descriptor.
// Only the thread that uses the ring may call this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "os/system.hpp"

namespace penstock::path {

class RingFiles {
  public:
    static constexpr std::uint32_t kSlots = 16;       // files at a time; operations on others use their descriptor
    static constexpr std::uint32_t kNoSlot = kSlots;  // no slot

    // Makes the empty table. Registers a file for rows of at least `register_from` operations.
    RingFiles(os::System& system, int ring_fd, std::uint32_t register_from);

    // Returns whether a row of this many operations is worth a slot.
    bool worth(std::size_t row) const noexcept { return row >= register_from_; }
    // The path begins an operation on `fd`, the first of `run` that follow each other on that file. Returns the slot
    // that the operation uses, to be passed to end(), or kNoSlot.
    std::uint32_t begin(int fd, std::size_t run) noexcept {
        if (fd == row_fd_ && filled_ == 0 && !worth(row_ + run)) {
            ++row_;
            return kNoSlot;
        }
        if (slots_[last_].fd != fd || fd < 0) return begin_other(fd, run);
        ++slots_[last_].in_flight;
        return last_;
    }
    // The path is about to return the operation's completion.
    void end(std::uint32_t slot) noexcept {
        if (slot != kNoSlot && --slots_[slot].in_flight == 0) empty(slot);
    }
    // No operation is in flight, so the current row ends.
    void rest() noexcept { row_ = 0; }

    // The errno with which the kernel refused the table or a change of it, or 0. After a refusal no slot is filled.
    int refusal() const noexcept { return refusal_; }

  private:
    struct FileSlot {
        int fd = -1;  // -1: empty
        std::uint32_t in_flight = 0;
    };
    std::uint32_t begin_other(int fd, std::size_t run) noexcept;
    std::uint32_t find(int fd) const noexcept;
    void empty(std::uint32_t slot) noexcept;
    bool update(std::uint32_t slot, int fd) noexcept;

    os::System& system_;
    const int ring_fd_;
    const std::uint32_t register_from_;
    std::array<FileSlot, kSlots> slots_;
    std::uint32_t last_ = 0;    // the slot used most recently
    std::uint32_t filled_ = 0;  // number of filled slots
    int row_fd_ = -1;           // of the last operation without a slot; row_ counts such operations in sequence
    std::size_t row_ = 0;
    int refusal_ = 0;
};

}  // namespace penstock::path
