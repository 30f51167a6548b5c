// RingFiles: which open files one ring is told of beforehand, and for how long.
//
// A registered file is a second owner of the open file. So a slot is filled only while operations that go by it are in
// flight, and emptied before the last of them is given back: who closes the file then has closed it, and the number of
// a descriptor means one file for as long as a slot has it. Filling and emptying cost what some twenty operations save
// (docs/decisions/0007), so only a long row of operations of one file is worth it; all others go by their descriptor.
// Belongs to the one thread that uses the ring.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "os/system.hpp"

namespace penstock::path {

class RingFiles {
  public:
    static constexpr std::uint32_t kSlots = 16;     // files at once; further ones go by their descriptor
    static constexpr std::uint32_t kNone = kSlots;  // no slot

    // Makes the empty table. A file is registered for rows of at least `register_from` operations.
    RingFiles(os::System& system, int ring_fd, std::uint32_t register_from);

    // A row of so many operations is worth a slot.
    bool worth(std::size_t row) const noexcept { return row >= register_from_; }
    // An operation on `fd` begins, the first of `run` on that file that are about to. Returns the slot that it goes by,
    // for end(), or kNone.
    std::uint32_t begin(int fd, std::size_t run) noexcept {
        if (fd == row_fd_ && filled_ == 0 && !worth(row_ + run)) {
            ++row_;
            return kNone;
        }
        if (slots_[last_].fd != fd || fd < 0) return begin_other(fd, run);
        ++slots_[last_].in_flight;
        return last_;
    }
    // The operation is about to be given back.
    void end(std::uint32_t slot) noexcept {
        if (slot != kNone && --slots_[slot].in_flight == 0) empty(slot);
    }
    // Nothing is in flight: a row ends here.
    void rest() noexcept { row_ = 0; }

    // The errno with which the kernel refused the table or a change of it; 0: none. From then on no slot is filled.
    int refusal() const noexcept { return refusal_; }

  private:
    struct Slot {
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
    std::array<Slot, kSlots> slots_;
    std::uint32_t last_ = 0;    // the slot gone by before
    std::uint32_t filled_ = 0;  // slots
    int row_fd_ = -1;           // of the last operation without a slot, and how many of it came in a row
    std::size_t row_ = 0;
    int refusal_ = 0;
};

}  // namespace penstock::path
