// A pool whose threads sleep between loops. A loop of one item, or in a pool of one worker, stays on the calling
// thread. A loop that ends before a thread wakes does not wait for that thread.
#include "hmatrix/threads/workers.hpp"

#include <sched.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

int usable_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

Workers::Workers(int count) {
    if (count < 0 || count > kMost) {
        throw Error(ErrorCode::invalid_argument, "start threads", std::to_string(count) + " threads are not possible",
                    "give 1 to " + std::to_string(kMost) + ", or 0 for one thread a core");
    }
    const int wanted = (count > 0 ? count : usable_cores()) - 1;
    threads_.reserve(wanted);
    try {
        for (int i = 0; i < wanted; ++i) threads_.emplace_back([this, i] { serve(i + 1); });
    } catch (const std::system_error&) {
        // The system refuses more threads. The threads that exist do the same work, and even the caller alone can do
        // it.
    }
}

Workers::~Workers() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    begun_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void Workers::take_items(int worker) noexcept {
    while (true) {
        const std::int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
        if (index >= items_) return;
        try {
            (*item_)(worker, index);
        } catch (...) {
            next_.store(items_, std::memory_order_relaxed);
            const std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
        }
    }
}

void Workers::serve(int worker) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
        begun_.wait(lock, [&] { return stop_ || (open_ && round_ != seen); });
        if (stop_) return;
        seen = round_;
        ++busy_;
        lock.unlock();
        take_items(worker);
        lock.lock();
        if (--busy_ == 0) ended_.notify_one();
    }
}

void Workers::for_each(std::int64_t items, const std::function<void(int, std::int64_t)>& item) {
    if (items <= 1 || threads_.empty()) {
        for (std::int64_t i = 0; i < items; ++i) item(0, i);
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        item_ = &item;
        items_ = items;
        next_.store(0, std::memory_order_relaxed);
        ++round_;
        open_ = true;
    }
    begun_.notify_all();
    take_items(0);
    std::unique_lock lock(mutex_);
    open_ = false;
    ended_.wait(lock, [&] { return busy_ == 0; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace penstock::hmatrix
