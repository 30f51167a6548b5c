// FaultGuard: plain memory copies out of a mapping whose file may be cut short, without dying of SIGBUS.
//
// A signal's disposition belongs to the process, so this is one of the few places with process-wide state: while at
// least one FaultGuard lives, SIGBUS goes to a handler that ends a guarded copy of the same thread and passes every
// other fault on to whoever handled it before. Whoever replaces the handler later wins: usable() then says false, and
// callers copy through the kernel instead. The worth: reading a file in tmpfs right after it was written, pread marks
// every page as used under one kernel lock (33 GB/s with 10 threads on an H200 host), a copy from the mapping does not
// (65 GB/s).
#pragma once

#include <cstddef>
#include <span>

#include "os/new_file/copy_beside.hpp"

namespace penstock::os {

class FaultGuard {
  public:
    FaultGuard();
    ~FaultGuard();
    FaultGuard(const FaultGuard&) = delete;
    FaultGuard& operator=(const FaultGuard&) = delete;

    // Ours is the handler in force.
    bool usable() const noexcept;
    // False when `from` faulted: `to` then holds an unknown part of the bytes. `to` must be good memory.
    bool copy(void* to, const void* from, std::size_t bytes) const noexcept;
};

// Copies of one thread, which makes it, uses it and ends it while a FaultGuard lives: many copies at the cost of one.
class GuardedCopies {
  public:
    GuardedCopies() noexcept;
    ~GuardedCopies();
    GuardedCopies(const GuardedCopies&) = delete;
    GuardedCopies& operator=(const GuardedCopies&) = delete;

    using Piece = CopyPiece;
    // False: too many threads have one already, and nothing will be copied.
    bool usable() const noexcept { return entry_ != nullptr; }
    // Copies all of them, small ones side by side. Each is told by `after(context, index)`, which may not throw, in
    // their order, when it is made. How many were made: if not all, the next one faulted.
    std::size_t copy_each(std::span<const Piece> pieces, void (*after)(void*, std::size_t), void* context) noexcept;

  private:
    friend class FaultGuard;
    explicit GuardedCopies(void* entry) noexcept : entry_(entry) {}
    void* entry_;  // of the handler's table; nullptr: there was none left
};

}  // namespace penstock::os
