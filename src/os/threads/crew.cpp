// See crew.hpp. One mutex guards everything; a thread takes it twice for each offer that it takes part in.
#include "os/threads/crew.hpp"

#include <algorithm>
#include <exception>

namespace penstock::os {

Crew::~Crew() {
    {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
        called_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    for (std::thread& thread : ended_) thread.join();
}

void Crew::run(std::size_t most, const std::function<void()>& work) {
    if (most == 0) return work();
    Offer offer{work, AllowedCpus::of_this_thread(), most};
    Threads ended;
    {
        const std::lock_guard lock(mutex_);
        offers_.push_back(&offer);
        ended.swap(ended_);
        wanted_ += most;
        most_ = std::max(most_, most);
        call_two();
    }
    work();
    for (std::thread& thread : ended) thread.join();
    std::unique_lock lock(mutex_);
    offers_.remove(&offer);
    wanted_ -= offer.wanted;
    left_.wait(lock, [&] { return offer.inside == 0; });
}

void Crew::call_two() {
    for (int i = 0; i < 2 && beginning_ + woken_ < wanted_; ++i) {
        if (idle_ != 0) {
            --idle_;
            ++woken_;
            called_.notify_one();
        } else if (threads_.size() < most_) {
            begin_thread();
        }
    }
}

void Crew::begin_thread() {
    Threads made;
    try {
        const auto self = made.emplace(made.end());
        *self = std::thread([this, self] { serve(self); });
    } catch (const std::exception&) {  // the system has no more threads: those that are there do the work
        return;
    }
    threads_.splice(threads_.end(), made);
    ++beginning_;
}

void Crew::serve(Threads::iterator self) {
    AllowedCpus own = AllowedCpus::of_this_thread();
    std::unique_lock lock(mutex_);
    for (--beginning_;; --woken_) {
        while (!offers_.empty()) take_part(lock, *offers_.front(), own);
        ++idle_;
        const bool is_called = called_.wait_for(lock, patience_, [&] { return is_ending_ || woken_ != 0; });
        if (is_ending_) return;
        if (!is_called) return leave(self);
    }
}

void Crew::leave(Threads::iterator self) {
    --idle_;
    ended_.splice(ended_.end(), threads_, self);
}

// `own`: the CPUs of this thread.
void Crew::take_part(std::unique_lock<std::mutex>& lock, Offer& offer, AllowedCpus& own) {
    --wanted_;
    ++offer.inside;
    if (--offer.wanted == 0) offers_.remove(&offer);
    call_two();
    lock.unlock();
    if (!(own == offer.cpus)) {
        own = offer.cpus;
        own.bind_this_thread();
    }
    offer.work();
    lock.lock();
    if (--offer.inside == 0) left_.notify_all();
}

}  // namespace penstock::os
