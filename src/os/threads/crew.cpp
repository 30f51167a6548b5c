// See crew.hpp. One mutex guards everything; a thread takes it twice for each offer that it takes part in.
#include "os/threads/crew.hpp"

#include <algorithm>
#include <exception>
#include <utility>

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
    Offer offer{work, most};
    std::vector<std::thread> ended;
    {
        const std::lock_guard lock(mutex_);
        ended.swap(ended_);
        offers_.push_back(&offer);
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
    try {
        threads_.emplace_back([this] { serve(); });
        ++beginning_;
    } catch (const std::exception&) {  // the system has no more threads: those that are there do the work
    }
}

void Crew::serve() {
    std::unique_lock lock(mutex_);
    for (--beginning_;; --woken_) {
        while (!offers_.empty()) take_part(lock, *offers_.front());
        ++idle_;
        const bool is_called = called_.wait_for(lock, patience_, [&] { return is_ending_ || woken_ != 0; });
        if (is_ending_) return;
        if (!is_called) return leave();
    }
}

void Crew::leave() {
    --idle_;
    const auto self = std::find_if(threads_.begin(), threads_.end(), [](const std::thread& one) {
        return one.get_id() == std::this_thread::get_id();
    });
    ended_.push_back(std::move(*self));
    threads_.erase(self);
}

void Crew::take_part(std::unique_lock<std::mutex>& lock, Offer& offer) {
    --wanted_;
    ++offer.inside;
    if (--offer.wanted == 0) offers_.remove(&offer);
    call_two();
    lock.unlock();
    offer.work();
    lock.lock();
    if (--offer.inside == 0) left_.notify_all();
}

}  // namespace penstock::os
