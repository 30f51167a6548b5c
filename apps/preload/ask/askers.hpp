// The threads that ask the kernel, so that the program's own never wait for it. None is started before a descriptor
// has something to ask: a process of several threads pays more for each of its calls.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/ask/table.hpp"

namespace preload {

class Askers {
public:
    constexpr explicit Askers(Table& table) : table_(table) {}

    // Whether the kernel is to be asked for the descriptor's bytes. The first call looks, which takes some system
    // calls. Requires: one caller at a time.
    static bool suits(Descriptor& descriptor, Direction direction);
    // Something was left to ask. Starts the threads at the first time.
    void wake();
    // In the child of a fork: the threads stayed with the parent.
    void forget() { started_.store(0); }
    int threads() const { return started_.load(std::memory_order_relaxed); }
    // Asks for what is left of one descriptor. Returns whether anything was. Tests call it without a thread.
    static bool serve(Descriptor& descriptor);

private:
    static void* run(void* askers);
    void start();

    Table& table_;
    std::atomic<std::uint32_t> news_{0};
    std::atomic<int> started_{0};
};

}  // namespace preload
