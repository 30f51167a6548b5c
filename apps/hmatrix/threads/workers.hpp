// A pool of threads that share the items of a loop. Assembly, products and vectors on the host use it.
//
// Workers take items one by one, so items may differ in cost. It is not determined which worker takes which item, so
// results must not depend on it. An exception in an item ends the loop, and for_each() throws it again in the caller.
// One pool should serve everything that a caller does in sequence: two pools would compete for the same cores.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::hmatrix {

class Workers {
  public:
    static constexpr int kMost = 4096;
    // `count` includes the caller of for_each; 0 means one worker for each core that this process may use. Throws
    // Error{invalid_argument} below 0 and above kMost. If the system gives fewer threads, those that exist do the same
    // work.
    explicit Workers(int count = 0);
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    ~Workers();

    int count() const noexcept { return static_cast<int>(threads_.size()) + 1; }
    // Calls item(worker, index) for each index below `items`, with worker below count(), and returns when all calls are
    // done. Requires: one loop at a time, and no call from inside an item.
    void for_each(std::int64_t items, const std::function<void(int worker, std::int64_t index)>& item);

  private:
    void serve(int worker);
    void take_items(int worker) noexcept;

    std::mutex mutex_;
    std::condition_variable begun_;
    std::condition_variable ended_;
    std::uint64_t round_ = 0;  // number of the current loop; mutex_ guards it and the members up to failure_
    bool open_ = false;  // whether the loop may still have items; a thread that wakes after it is closed skips the loop
    int busy_ = 0;  // threads that take part in this loop
    bool stop_ = false;
    std::exception_ptr failure_;
    std::atomic<std::int64_t> next_{0};
    // This and item_ are written under mutex_ before a loop opens, and only read while it runs.
    std::int64_t items_ = 0;
    const std::function<void(int, std::int64_t)>* item_ = nullptr;
    std::vector<std::thread> threads_;
};

// Uses the caller's pool if there is one, or else a pool of its own. If the work is not worth waking other threads, it
// uses the calling thread only.
class LentWorkers {
  public:
    LentWorkers(Workers* lent, bool worth_it) : own_(lent == nullptr && worth_it ? 0 : 1) {
        used_ = lent != nullptr && worth_it ? lent : &own_;
    }
    LentWorkers(const LentWorkers&) = delete;
    LentWorkers& operator=(const LentWorkers&) = delete;
    void for_each(std::int64_t items, const std::function<void(int worker, std::int64_t index)>& item) {
        used_->for_each(items, item);
    }

  private:
    Workers own_;
    Workers* used_;
};

}  // namespace penstock::hmatrix
