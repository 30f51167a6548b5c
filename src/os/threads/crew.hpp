// Crew: threads that do a caller's work beside him, and wait for the next caller in between.
//
// To begin fifteen threads, or to wake them one after the other, takes longer than most of the calls that they help.
//
// 1. A caller offers his work, and does it himself meanwhile.
// 2. A thread that comes takes part, as long as the offer wants another. As it begins it calls two others, which wake
//    or are begun: the caller has called two only.
// 3. A caller whose own part is done takes his offer back: a thread that comes late finds none. He waits for the
//    threads that have taken part.
// 4. A thread that nothing was asked of for a second ends: a program that forks later has it no more.
// 5. A thread runs on the CPUs that its caller may run on, as one that he began himself would.
//
// What must stay true: no caller needs a helper, so that a system without threads, and helpers that are busy with
// another caller, cost speed alone. After run() no thread is in the work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "os/threads/cpus.hpp"

namespace penstock::os {

class Crew {
  public:
    explicit Crew(std::chrono::milliseconds patience = std::chrono::seconds(1)) : patience_(patience) {}
    ~Crew();  // Requires: no call is in run(), and no process was forked since the first one.
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    // Calls `work` on this thread, and at the same time on up to `most` others. Requires: one call of it can do all,
    // and it throws nothing. Throws std::bad_alloc before the first call.
    void run(std::size_t most, const std::function<void()>& work);

  private:
    using Threads = std::list<std::thread>;  // so that one that ends needs no memory to go to another list
    struct Offer {
        const std::function<void()>& work;
        const AllowedCpus cpus;
        std::size_t wanted;      // threads that may still come
        std::size_t inside = 0;  // that are in the work
    };
    // All of these require mutex_.
    void call_two();
    void begin_thread();
    void take_part(std::unique_lock<std::mutex>& lock, Offer& offer, AllowedCpus& own);

    void serve(Threads::iterator self);  // what a thread does
    void leave(Threads::iterator self);  // its handle goes to ended_; requires mutex_

    const std::chrono::milliseconds patience_;  // of a thread that waits for a caller

    std::mutex mutex_;
    std::condition_variable called_, left_;
    std::list<Offer*> offers_;  // that want threads; guarded by mutex_, as all below
    std::size_t wanted_ = 0;    // threads, by all offers
    std::size_t beginning_ = 0, woken_ = 0;  // threads that were called, and have not come yet
    std::size_t idle_ = 0;      // threads that wait, without those that were called
    std::size_t most_ = 0;      // threads that one offer has wanted: more are never begun
    bool is_ending_ = false;
    Threads threads_;
    Threads ended_;  // that are to be joined
};

}  // namespace penstock::os
