// See team.hpp.
#include "hmatrix/solve/team.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace penstock::hmatrix {

unsigned threads_of_this_machine(unsigned limit) noexcept {
    return std::clamp(std::thread::hardware_concurrency(), 1u, std::max(limit, 1u));
}

Team::Team(unsigned threads) {
    threads_.reserve(threads);
    try {
        for (unsigned i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // the system gives no more threads: those there are do the same work
    }
}

Team::~Team() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    started_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void Team::run(std::int64_t parts, const std::function<void(std::int64_t)>& part) {
    if (threads_.empty() || parts < 2) {
        for (std::int64_t i = 0; i < parts; ++i) part(i);
        return;
    }
    std::unique_lock lock(mutex_);
    part_ = &part;
    parts_ = parts;
    next_ = 0;
    started_.notify_all();
    take_parts(lock);
    finished_.wait(lock, [this] { return running_ == 0; });
    part_ = nullptr;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Team::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        started_.wait(lock, [this] { return closing_ || (part_ != nullptr && next_ < parts_); });
        if (closing_) return;
        take_parts(lock);
        if (running_ == 0) finished_.notify_one();
    }
}

void Team::take_parts(std::unique_lock<std::mutex>& lock) {
    while (part_ != nullptr && next_ < parts_) {
        const std::int64_t mine = next_++;
        ++running_;
        lock.unlock();
        std::exception_ptr error;
        try {
            (*part_)(mine);
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        --running_;
        if (error) next_ = parts_;
        if (error && !error_) error_ = error;
    }
}

}  // namespace penstock::hmatrix
