// The threads that ask the kernel, so that the program's own never wait for it. None is started before a descriptor
// has something to ask: a process of several threads pays more for each of its calls.
#pragma once

#include <pthread.h>

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
    void forget() { started_.store(kNone), ends_.store(false), begun_.store(0); }
    // How many ask; below 0: the system gave none, and none is asked for again.
    int threads() const {
        const int started = started_.load(std::memory_order_relaxed);
        return started < kRefused ? 0 : started;
    }
    // Ends the threads, after the piece that each is at. They come back when something is left to ask, unless it is
    // for good. Returns when the kernel has them no more.
    void end(bool for_good);
    // Asks for what is left of one descriptor. Returns whether anything was. Tests call it without a thread.
    static bool serve(Descriptor& descriptor);

private:
    static constexpr int kThreads = 2;
    static constexpr int kNone = 0, kRefused = -1;
    static constexpr int kBusy = -2;  // they are being started, or ended
    static constexpr int kOver = -3;  // they were ended for good

    static void* run(void* askers);
    void start();

    Table& table_;
    std::atomic<std::uint32_t> news_{0};
    std::atomic<int> started_{kNone};
    std::atomic<bool> ends_{false};
    pthread_t ids_[kThreads] = {};  // as many as started_ says, which is stored after them
    std::atomic<int> begun_{0};     // threads that have stored their number
    std::atomic<int> numbers_[kThreads] = {};
};

}  // namespace preload
